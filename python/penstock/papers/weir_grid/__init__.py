"""One discipline for everything: `weir` on testbeds of many kinds, beside what else there is."""
