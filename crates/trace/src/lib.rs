//! Traces: pcap, pcapng and CSV in, pcapng out, and replay of arrivals through any queue discipline.
