/*
 * Many TFTP clients in one process, written for the bench: it must not be what is measured. Each client has an address of its own
 * (127.1.x.y), fetches the file <rounds> times one after the other and compares every byte. One line of JSON on stdout.
 *
 *   tftp-client <address> <port> <name> <file to compare with> <clients> <rounds> <block size> <window size> <loss per mille>
 *
 * Loss is drawn here (seeded), for what is sent and for what is received alike, so that every server meets the same network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 1000 /* as firmware does */
#define TRIES 20
#define MOST 65600

struct client {
  int fd, index, connected, rounds, tries;
  uint32_t blocks, unacknowledged, window;
  size_t got, block_size;
  double began, heard;
};

static struct sockaddr_in server;
static const char *name;
static uint8_t *expected;
static size_t size;
static int epoll, rounds, asked_block, asked_window, per_mille, failed, done;
static double *samples;
static uint32_t draw = 20261130;
static unsigned long datagrams, again, again_of_server;

static double now_ms(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

static int lost(void) {
  if (per_mille == 0) return 0;
  draw ^= draw << 13, draw ^= draw >> 17, draw ^= draw << 5;
  return draw % 1000 < (uint32_t)per_mille;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void transmit(struct client *c, const void *bytes, size_t length) {
  if (lost()) return;
  if (c->connected) (void)!send(c->fd, bytes, length, 0);
  else (void)!sendto(c->fd, bytes, length, 0, (struct sockaddr *)&server, sizeof server);
}

static void ask(struct client *c) {
  char packet[600];
  size_t length = 2;
  packet[0] = 0, packet[1] = 1;
  length += (size_t)sprintf(packet + length, "%s", name) + 1;
  length += (size_t)sprintf(packet + length, "octet") + 1;
  if (asked_block != 512) {
    length += (size_t)sprintf(packet + length, "blksize") + 1;
    length += (size_t)sprintf(packet + length, "%d", asked_block) + 1;
  }
  if (asked_window != 1) {
    length += (size_t)sprintf(packet + length, "windowsize") + 1;
    length += (size_t)sprintf(packet + length, "%d", asked_window) + 1;
  }
  transmit(c, packet, length);
}

static void acknowledge(struct client *c) {
  uint8_t packet[4] = {0, 4, (uint8_t)(c->blocks >> 8), (uint8_t)c->blocks};
  c->unacknowledged = 0;
  transmit(c, packet, 4);
}

static void begin(struct client *c) {
  struct sockaddr_in own = {.sin_family = AF_INET};
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  int room = 1 << 20;
  own.sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)(c->index / 250 * 256 + c->index % 250));
  if ((c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) < 0) die("socket");
  (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (bind(c->fd, (struct sockaddr *)&own, sizeof own) < 0) die("bind");
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) die("epoll_ctl");
  c->connected = 0, c->blocks = 0, c->unacknowledged = 0, c->got = 0, c->tries = 0, c->block_size = 512, c->window = 1;
  c->began = c->heard = now_ms();
  ask(c);
}

static void end(struct client *c, int good, const char *why) {
  close(c->fd);
  if (good) samples[done++] = now_ms() - c->began;
  else failed += c->rounds, fprintf(stderr, "client %d: %s\n", c->index, why);
  if (good && --c->rounds > 0) begin(c);
  else c->fd = -1;
}

static void take_options(struct client *c, const char *at, const char *to) {
  while (at < to) {
    const char *value = at + strlen(at) + 1;
    if (value >= to) return;
    if (strcasecmp(at, "blksize") == 0) c->block_size = (size_t)atoi(value);
    if (strcasecmp(at, "windowsize") == 0) c->window = (uint32_t)atoi(value);
    at = value + strlen(value) + 1;
  }
}

/* 0 when the transfer has ended */
static int take(struct client *c, uint8_t *packet, size_t length) {
  int opcode = packet[1];
  if (opcode == 5) return packet[length] = 0, end(c, 0, (char *)packet + 4), 0;
  if (opcode == 6 && c->blocks == 0) {
    packet[length] = 0;
    take_options(c, (char *)packet + 2, (char *)packet + length);
    return acknowledge(c), 1;
  }
  if (opcode != 3) return 1;
  uint16_t ahead = (uint16_t)((packet[2] << 8 | packet[3]) - c->blocks);
  size_t data = length - 4;
  if (ahead != 1) {
    /* A repeat is acknowledged again when it ends a window, a gap once at its start: the server goes on behind it. */
    if (ahead == 0) again_of_server++, acknowledge(c);
    else if (ahead < 0x8000 && c->unacknowledged < 0x10000) acknowledge(c), c->unacknowledged = 0x10000;
    return 1;
  }
  if (c->unacknowledged >= 0x10000) c->unacknowledged = 0;
  if (c->got + data > size || memcmp(expected + c->got, packet + 4, data) != 0) return end(c, 0, "wrong bytes"), 0;
  c->got += data, c->blocks++, c->unacknowledged++, c->tries = 0;
  if (data < c->block_size) {
    acknowledge(c);
    return end(c, c->got == size, "too short"), 0;
  }
  if (c->unacknowledged >= c->window) acknowledge(c);
  return 1;
}

static void readable(struct client *c) {
  static uint8_t packet[MOST + 1];
  for (int turn = 0; turn < 32; turn++) {
    struct sockaddr_in from;
    socklen_t of = sizeof from;
    ssize_t length = c->connected ? recv(c->fd, packet, MOST, 0) : recvfrom(c->fd, packet, MOST, 0, (struct sockaddr *)&from, &of);
    if (length < 0) return;
    if (length < 4) continue;
    datagrams++;
    if (lost()) continue;
    if (!c->connected) {
      if (connect(c->fd, (struct sockaddr *)&from, sizeof from) < 0) die("connect");
      c->connected = 1;
    }
    c->heard = now_ms();
    int fd = c->fd;
    if (!take(c, packet, (size_t)length) || c->fd != fd) return;
    /* One block a window: nothing else can be there before our answer has arrived. */
    if (c->window == 1) return;
  }
}

static void remind(struct client *c, double at) {
  if (c->fd < 0 || at - c->heard < WAIT_MS) return;
  c->heard = at;
  if (++c->tries > TRIES) return end(c, 0, "gave up");
  again++;
  if (c->connected) acknowledge(c);
  else ask(c);
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 10) return fprintf(stderr, "wrong use\n"), 2;
  server.sin_family = AF_INET, server.sin_port = htons((uint16_t)atoi(argv[2]));
  inet_pton(AF_INET, argv[1], &server.sin_addr);
  name = argv[3];
  FILE *file = fopen(argv[4], "rb");
  if (!file) die(argv[4]);
  fseek(file, 0, SEEK_END), size = (size_t)ftell(file), rewind(file);
  expected = malloc(size);
  if (fread(expected, 1, size, file) != size) die("read");
  int clients = atoi(argv[5]);
  rounds = atoi(argv[6]), asked_block = atoi(argv[7]), asked_window = atoi(argv[8]), per_mille = atoi(argv[9]);
  struct client *all = calloc((size_t)clients, sizeof *all);
  samples = calloc((size_t)(clients * rounds), sizeof *samples);
  epoll = epoll_create1(0);
  double began = now_ms(), checked = began;
  for (int i = 0; i < clients; i++) all[i].index = i, all[i].rounds = rounds, begin(&all[i]);
  while (done + failed < clients * rounds) {
    struct epoll_event events[64];
    int count = epoll_wait(epoll, events, 64, 50);
    for (int i = 0; i < count; i++) readable(events[i].data.ptr);
    double at = now_ms();
    if (at - checked >= 50) {
      checked = at;
      for (int i = 0; i < clients; i++) remind(&all[i], at);
    }
  }
  double took = now_ms() - began;
  qsort(samples, (size_t)done, sizeof *samples, ascending);
  printf("{\"done\":%d,\"failed\":%d,\"ms\":%.1f,\"megabytesPerSecond\":%.2f,\"p50\":%.1f,\"p99\":%.1f,\"datagrams\":%lu,\"remindersSent\":%lu,\"repeatsReceived\":%lu}\n", done, failed, took,
         (double)done * (double)size / 1e6 / (took / 1e3), done ? samples[done / 2] : 0, done ? samples[(done * 99 - 1) / 100] : 0, datagrams, again, again_of_server);
  return failed ? 1 : 0;
}
