/* A disk below everything that writes: loaded before libc, so that SQLite and Python go through it alike.

   What a file holds when it is synced is kept in POWER_SHADOW under its device and inode: after a power cut that is
   what is left of it. POWER_DELAY milliseconds pass before each sync of what lies below POWER_DELAYED (without that, of
   anything); a line for each goes to POWER_SYNCS: when it began, in milliseconds, and what was synced. After
   POWER_FULL_AFTER bytes, POWER_FULL_FOR writes fail as on a full disk; then there is room again. From its
   POWER_LOCKED_AFTER-th write lock on, SQLite finds each held by another program for POWER_LOCKED_FOR milliseconds.

   While the file POWER_REFUSES exists, what changes the disk below POWER_REFUSED fails with the number of an error in
   it: of all kinds of calls or of the one kind that follows (open, write, sync, name), each time or `once`; and each
   such call takes the milliseconds that follow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096
static struct { dev_t dev; ino_t ino; int pin; } known[MOST];
static int count;
static long long written, refused;

/* A descriptor to read the file by. It stays open: closing one would drop SQLite's locks, and while it is open no other
   file gets the inode. */
static int reader(int fd, const struct stat *st) {
    int at, n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    for (at = 0; at < n; at++)
        if (known[at].dev == st->st_dev && known[at].ino == st->st_ino) return known[at].pin;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int pin = open(path, O_RDONLY | O_CLOEXEC);
    at = __atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);
    if (at < MOST) { known[at].dev = st->st_dev; known[at].ino = st->st_ino; known[at].pin = pin; }
    return pin;
}

static void keep(int fd) {
    const char *shadow = getenv("POWER_SHADOW");
    struct stat st;
    if (!shadow || fstat(fd, &st) || !S_ISREG(st.st_mode)) return;
    char path[4096], made[4200], data[65536];
    snprintf(path, sizeof path, "%s/%lu-%lu", shadow, (unsigned long)st.st_dev, (unsigned long)st.st_ino);
    snprintf(made, sizeof made, "%s.%d-%p", path, getpid(), (void *)&st);
    int from = reader(fd, &st), to = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t (*really)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    off_t at = 0;
    ssize_t n;
    while ((n = pread(from, data, sizeof data, at)) > 0) {
        really(to, data, n);
        at += n;
    }
    close(to);
    rename(made, path);
}

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000LL + at.tv_nsec / 1000000;
}

/* The path that a descriptor leads to; "" where the system does not tell. */
static const char *name_of(int fd, char *name, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, size - 1);
    name[n < 0 ? 0 : n] = 0;
    return name;
}

/* Whether a call is refused: of an open file, or of a name in a folder. */
static int refuses(int fd, const char *name, const char *kind) {
    const char *control = getenv("POWER_REFUSES"), *below = getenv("POWER_REFUSED");
    char text[64] = "", what[16] = "", times[16] = "", path[8192], folder[4096] = "";
    int code = 0, slow = 0;
    if (!control || !below) return 0;
    int (*really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int from = really(control, O_RDONLY | O_CLOEXEC);
    if (from < 0) return 0;
    ssize_t n = read(from, text, sizeof text - 1);
    close(from);
    if (n <= 0 || sscanf(text, "%d %15s %15s %d", &code, what, times, &slow) < 3) return 0;
    if (strcmp(what, "any") && strcmp(what, kind)) return 0;
    if (!name) name_of(fd, path, sizeof path);
    else if (name[0] == '/') snprintf(path, sizeof path, "%s", name);
    else {
        if (fd == AT_FDCWD) { if (!getcwd(folder, sizeof folder)) return 0; }
        else name_of(fd, folder, sizeof folder);
        snprintf(path, sizeof path, "%s/%s", folder, name);
    }
    if (strncmp(path, below, strlen(below))) return 0;
    if (slow) usleep(1000 * slow);
    if (!code) return 0;
    if (!strcmp(times, "once")) {
        int (*gone)(const char *) = dlsym(RTLD_NEXT, "unlink");
        gone(control);
    }
    errno = code;
    return 1;
}

static void wait_for_disk(int fd) {
    const char *delay = getenv("POWER_DELAY"), *below = getenv("POWER_DELAYED"), *told = getenv("POWER_SYNCS");
    char name[4096], line[4200];
    if (!delay || (below && strncmp(name_of(fd, name, sizeof name), below, strlen(below)))) return;
    if (told) {
        ssize_t (*really)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
        int to = open(told, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int n = snprintf(line, sizeof line, "%lld %s\n", now(), name_of(fd, name, sizeof name));
        really(to, line, n);
        close(to);
    }
    usleep(1000 * atoi(delay));
}

static int full(int fd, size_t size) {
    const char *after = getenv("POWER_FULL_AFTER"), *times = getenv("POWER_FULL_FOR");
    struct stat st;
    if (!after || !times || fstat(fd, &st) || !S_ISREG(st.st_mode)) return 0;
    if (__atomic_add_fetch(&written, size, __ATOMIC_RELAXED) < atoll(after)) return 0;
    if (__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED) > atoll(times)) return 0;
    errno = ENOSPC;
    return 1;
}

int fsync(int fd) {
    if (refuses(fd, NULL, "sync")) return -1;
    wait_for_disk(fd);
    keep(fd);
    return 0;
}

int fdatasync(int fd) {
    if (refuses(fd, NULL, "sync")) return -1;
    wait_for_disk(fd);
    keep(fd);
    return 0;
}

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*really)(int, const void *, size_t);
    if (!really) really = dlsym(RTLD_NEXT, "write");
    return full(fd, size) || refuses(fd, NULL, "write") ? -1 : really(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    static ssize_t (*really)(int, const void *, size_t, off_t);
    if (!really) really = dlsym(RTLD_NEXT, "pwrite");
    return full(fd, size) || refuses(fd, NULL, "write") ? -1 : really(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    static ssize_t (*really)(int, const void *, size_t, off64_t);
    if (!really) really = dlsym(RTLD_NEXT, "pwrite64");
    return full(fd, size) || refuses(fd, NULL, "write") ? -1 : really(fd, data, size, at);
}

/* Whether this is SQLite's lock to write, in the file beside its log, while another program has it. */
static int held(int fd, int command, const struct flock *lock) {
    static long long asked, since;
    const char *after = getenv("POWER_LOCKED_AFTER"), *times = getenv("POWER_LOCKED_FOR");
    char name[4096];
    if (!after || !times || command != F_SETLK || lock->l_type != F_WRLCK || lock->l_start != 120) return 0;
    size_t length = strlen(name_of(fd, name, sizeof name));
    if (length < 4 || strcmp(name + length - 4, "-shm")) return 0;
    if (__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) < atoll(after)) return 0;
    if (!since) since = now();
    return now() < since + atoll(times);
}

#define LOCKING(name)                                              \
    int name(int fd, int command, ...) {                           \
        static int (*really)(int, int, ...);                       \
        if (!really) really = dlsym(RTLD_NEXT, #name);             \
        va_list rest;                                              \
        va_start(rest, command);                                   \
        void *given = va_arg(rest, void *);                        \
        va_end(rest);                                              \
        if (given > (void *)4096 && held(fd, command, given)) {    \
            errno = EAGAIN;                                        \
            return -1;                                             \
        }                                                          \
        return really(fd, command, given);                         \
    }

LOCKING(fcntl)
LOCKING(fcntl64)

#define CHANGES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPENING(name)                                                                        \
    int name(const char *path, int flags, ...) {                                             \
        static int (*really)(const char *, int, ...);                                        \
        if (!really) really = dlsym(RTLD_NEXT, #name);                                       \
        va_list rest;                                                                        \
        va_start(rest, flags);                                                               \
        mode_t mode = va_arg(rest, mode_t);                                                  \
        va_end(rest);                                                                        \
        if (flags & CHANGES && refuses(AT_FDCWD, path, "open")) return -1;                   \
        return really(path, flags, mode);                                                    \
    }

#define OPENING_AT(name)                                                                     \
    int name(int folder, const char *path, int flags, ...) {                                 \
        static int (*really)(int, const char *, int, ...);                                   \
        if (!really) really = dlsym(RTLD_NEXT, #name);                                       \
        va_list rest;                                                                        \
        va_start(rest, flags);                                                               \
        mode_t mode = va_arg(rest, mode_t);                                                  \
        va_end(rest);                                                                        \
        if (flags & CHANGES && refuses(folder, path, "open")) return -1;                     \
        return really(folder, path, flags, mode);                                            \
    }

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

int rename(const char *one, const char *other) {
    static int (*really)(const char *, const char *);
    if (!really) really = dlsym(RTLD_NEXT, "rename");
    return refuses(AT_FDCWD, other, "name") ? -1 : really(one, other);
}

int renameat(int from, const char *one, int to, const char *other) {
    static int (*really)(int, const char *, int, const char *);
    if (!really) really = dlsym(RTLD_NEXT, "renameat");
    return refuses(to, other, "name") ? -1 : really(from, one, to, other);
}

int linkat(int from, const char *one, int to, const char *other, int flags) {
    static int (*really)(int, const char *, int, const char *, int);
    if (!really) really = dlsym(RTLD_NEXT, "linkat");
    return refuses(to, other, "name") ? -1 : really(from, one, to, other, flags);
}

int unlink(const char *path) {
    static int (*really)(const char *);
    if (!really) really = dlsym(RTLD_NEXT, "unlink");
    return refuses(AT_FDCWD, path, "name") ? -1 : really(path);
}

int unlinkat(int folder, const char *path, int flags) {
    static int (*really)(int, const char *, int);
    if (!really) really = dlsym(RTLD_NEXT, "unlinkat");
    return refuses(folder, path, "name") ? -1 : really(folder, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    static int (*really)(const char *, mode_t);
    if (!really) really = dlsym(RTLD_NEXT, "mkdir");
    return refuses(AT_FDCWD, path, "name") ? -1 : really(path, mode);
}

int ftruncate64(int fd, off64_t size) {
    static int (*really)(int, off64_t);
    if (!really) really = dlsym(RTLD_NEXT, "ftruncate64");
    return refuses(fd, NULL, "write") ? -1 : really(fd, size);
}
