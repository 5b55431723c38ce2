/*
 * Plays a network share for a program that loads this library with LD_PRELOAD:
 * - PLAYED_MOUNTS: the file that the program reads instead of /proc/self/mountinfo;
 * - PLAYED_FAULT=locks: there are no locks on any file;
 * - PLAYED_FAULT=target: there are none on the file that marks the target of an export or publication;
 * - PLAYED_FAULT=broken: locks on it end with an error of the disk;
 * - PLAYED_FAULT=memory: a file whose name ends in -shm cannot be mapped into memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int has_fault(const char *fault) {
  const char *played = getenv("PLAYED_FAULT");
  return played != NULL && strcmp(played, fault) == 0;
}

static int is_of(int fd, const char *part) {
  char link[32], name[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, name, sizeof name - 1) > 0 && strstr(name, part) != NULL;
}

static int has_no_locks(int fd) {
  return has_fault("locks") || ((has_fault("target") || has_fault("broken")) && is_of(fd, "/.parley-"));
}

static int open_played(const char *path, int flags, mode_t mode) {
  const char *mounts = getenv("PLAYED_MOUNTS");
  if (mounts != NULL && strcmp(path, "/proc/self/mountinfo") == 0) path = mounts;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                          \
  int name(const char *path, int flags, ...) { \
    va_list rest;                           \
    va_start(rest, flags);                  \
    mode_t mode = va_arg(rest, mode_t);     \
    va_end(rest);                           \
    return open_played(path, flags, mode);  \
  }
OPEN(open)
OPEN(open64)

#define FCNTL(name)                                                 \
  int name(int fd, int command, ...) {                              \
    va_list rest;                                                   \
    va_start(rest, command);                                        \
    void *argument = va_arg(rest, void *);                          \
    va_end(rest);                                                   \
    if ((command == F_SETLK || command == F_GETLK) && has_no_locks(fd)) { \
      errno = has_fault("broken") ? EIO : ENOLCK;                                               \
      return -1;                                                    \
    }                                                               \
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name);           \
    return real(fd, command, argument);                             \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

static void *map_played(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && has_fault("memory")) {
    char link[32], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, name, sizeof name);
    if (size > 4 && memcmp(name + size - 4, "-shm", 4) == 0) {
      errno = ENODEV;
      return MAP_FAILED;
    }
  }
  return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return map_played(address, length, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return map_played(address, length, protection, flags, fd, offset);
}
