/* A transport stack of one's own for Penstock, as a program: cc -O2 -o aimd aimd.c
 *
 *     penstock run aimd.toml --stack aimd=./aimd
 *
 * It speaks the protocol of frames on its standard input and output: `penstock docs stacks` has it. The stack itself is
 * short: a window that grows by a packet each round trip and is halved by a loss, cumulative acknowledgments, and a
 * sender that goes back to the first byte that is missing. An argument is a window in packets that never changes. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO = 1, OPEN, RECEIVE, WAKE, WRITE, FINISH, CLOSE, FORGET };
enum { SEND = 16, READ, TELL, ENDED, FAIL, DONE };
enum { PAYLOAD = 1200, ECT0 = 2, CE = 3 };
#define NEVER UINT64_MAX
#define MS 1000000ULL

struct head { /* 24 bytes, little-endian; on another machine the numbers must be turned around */
    uint32_t length;
    uint8_t kind, side, ecn, zero;
    uint32_t connection, zeros;
    uint64_t value;
};

/* A datagram is this head, and the bytes of a data packet. */
struct packet {
    uint64_t byte; /* data: number of its first byte; acknowledgment: the next byte that is wanted */
    uint64_t sent; /* data: when it was sent; acknowledgment: the same, given back */
    uint32_t length, marked;
};

struct end {
    uint32_t connection;
    uint8_t side, known, connected;
    uint64_t written, next, acked;     /* client: bytes to send in all, the next, the first that is not acknowledged */
    uint64_t most, timeout, recover;   /* highest byte sent, when to go back, no further cut before this byte is acknowledged */
    uint64_t rtt, lost;
    uint32_t again;                    /* acknowledgments that ask for the same byte */
    double window, threshold;          /* in packets */
    uint64_t wanted;                   /* server: the next byte */
};

static struct end **ends;
static size_t count;
static double fixed; /* a window that never changes; 0: none */

static void put(struct end *end, uint8_t kind, uint8_t ecn, uint64_t value, const void *body, uint32_t length)
{
    struct head head = {length, kind, end->side, ecn, 0, end->connection, 0, value};
    fwrite(&head, sizeof head, 1, stdout);
    if (length)
        fwrite(body, 1, length, stdout);
}

static struct end *find(uint32_t connection, uint8_t side)
{
    size_t place = 2 * (size_t)connection + side;
    if (place >= count) {
        ends = realloc(ends, (place + 1) * sizeof *ends);
        memset(ends + count, 0, (place + 1 - count) * sizeof *ends);
        count = place + 1;
    }
    if (!ends[place]) {
        ends[place] = calloc(1, sizeof **ends);
        ends[place]->connection = connection;
        ends[place]->side = side;
        ends[place]->window = fixed ? fixed : 10;
        ends[place]->threshold = 1e9;
        ends[place]->timeout = NEVER;
    }
    return ends[place];
}

/* Sends what the window allows. */
static void send_data(struct end *end, uint64_t now)
{
    static uint8_t datagram[sizeof(struct packet) + PAYLOAD];
    while (end->next < end->written && end->next < end->acked + (uint64_t)(end->window * PAYLOAD)) {
        uint64_t left = end->written - end->next;
        struct packet packet = {end->next, now, left < PAYLOAD ? (uint32_t)left : PAYLOAD, 0};
        memcpy(datagram, &packet, sizeof packet);
        put(end, SEND, ECT0, 0, datagram, sizeof packet + packet.length);
        end->next += packet.length;
        if (end->next > end->most)
            end->most = end->next;
        if (end->timeout == NEVER)
            end->timeout = now + (end->rtt ? 2 * end->rtt + 100 * MS : 1000 * MS);
    }
}

/* Cuts the window once for each window of data. */
static void cut(struct end *end, double to)
{
    if (end->acked < end->recover)
        return;
    end->recover = end->most;
    if (fixed)
        return;
    end->threshold = end->window / 2 < 2 ? 2 : end->window / 2;
    end->window = to > 0 ? to : end->threshold;
}

static void go_back(struct end *end)
{
    end->lost += (end->next - end->acked + PAYLOAD - 1) / PAYLOAD;
    end->next = end->acked;
}

static void on_ack(struct end *end, const struct packet *ack, uint64_t now)
{
    end->connected = 1;
    end->rtt = end->rtt ? (7 * end->rtt + now - ack->sent) / 8 : now - ack->sent;
    if (ack->marked)
        cut(end, 0);
    if (ack->byte > end->acked) {
        end->acked = ack->byte;
        if (end->next < end->acked)
            end->next = end->acked;
        end->window += fixed ? 0 : end->window < end->threshold ? 1 : 1 / end->window;
        end->again = 0;
        end->timeout = end->acked < end->most ? now + 2 * end->rtt + 100 * MS : NEVER;
    } else if (++end->again == 3 && end->acked >= end->recover) {
        cut(end, 0);
        go_back(end);
    }
}

static void on_data(struct end *end, const struct packet *data, uint8_t ecn)
{
    if (data->byte == end->wanted) {
        end->wanted += data->length;
        put(end, READ, 0, data->length, NULL, 0);
    }
    struct packet ack = {end->wanted, data->sent, 0, ecn == CE};
    put(end, SEND, 0, 0, &ack, sizeof ack);
}

int main(int argc, char **argv)
{
    fixed = argc > 1 ? atof(argv[1]) : 0;
    struct head head;
    static uint8_t body[1 << 16];
    while (fread(&head, sizeof head, 1, stdin) == 1) {
        if (head.length > sizeof body || fread(body, 1, head.length, stdin) != head.length)
            return 1;
        struct end *end = find(head.connection, head.side);
        uint64_t now = head.value;
        struct packet packet = {0};
        if (head.kind == HELLO) {
            put(end, HELLO, 0, 1, "aimd 1.0", 8);
        } else if (head.kind == RECEIVE && head.length >= sizeof packet) {
            memcpy(&packet, body, sizeof packet);
            if (head.side == 0)
                on_ack(end, &packet, now);
            else
                on_data(end, &packet, head.ecn);
        } else if (head.kind == WAKE && end->timeout <= now) {
            end->recover = 0;
            cut(end, 1);
            go_back(end);
            end->timeout = NEVER;
        } else if (head.kind == WRITE && head.length == 8) {
            uint64_t more;
            memcpy(&more, body, 8);
            end->written += more;
        } else if (head.kind == CLOSE) {
            end->written = end->next = end->acked = end->most;
            end->timeout = NEVER;
        } else if (head.kind == FORGET) {
            size_t place = 2 * (size_t)head.connection + head.side;
            free(ends[place]);
            ends[place] = NULL;
            continue; /* the only request without an answer */
        }
        if (head.side == 0 && head.kind != HELLO) {
            send_data(end, now);
            uint8_t told[17] = {end->connected};
            memcpy(told + 1, &end->rtt, 8);
            memcpy(told + 9, &end->lost, 8);
            put(end, TELL, 0, (uint64_t)(end->window * PAYLOAD), told, sizeof told);
        }
        put(end, DONE, 0, end->timeout, NULL, 0);
        fflush(stdout);
    }
    return 0;
}
