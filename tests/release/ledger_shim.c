/* Counts the I/O calls of a process and makes one of them go wrong.

   Preloaded by tests/release/ledger_faults.py. `shim_arm(n, mode, error, fd)`
   acts on the n-th call from then on; calls on `fd` (the test's own pipe) are
   not counted. Modes: 1 dies before the call, 2 after it, 3 after half of it,
   4 fails it, 5 fails it and every later call that would use disk space. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

static long count, target;
static int mode, error_code, own_fd = -1, fired;

void shim_arm(long n, int new_mode, int code, int fd) {
  count = 0;
  fired = 0;
  target = n;
  mode = new_mode;
  error_code = code;
  own_fd = fd;
}
int shim_fired(void) { return fired; }
long shim_count(void) { return count; }

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int hit(int fd, int uses_space) {
  if (!target || (fd >= 0 && (fd == own_fd || fd == 2))) return 0;
  count++;
  if (count == target) {
    fired = 1;
    if (mode == 1) die();
    if (mode == 5 && !uses_space) return 0;
    return mode == 5 ? 4 : mode;
  }
  return mode == 5 && fired && uses_space ? 4 : 0;
}

#define REAL(type, name) \
  static type real;      \
  if (!real) real = (type)dlsym(RTLD_NEXT, #name)
#define FINISH(call)                     \
  if (how == 4) {                        \
    errno = error_code;                  \
    return -1;                           \
  }                                      \
  long result = call;                    \
  if (how == 2 || how == 3) die();       \
  return result;

#define WRITE(name, offset_params, offset_args)                       \
  ssize_t name(int fd, const void *data, size_t size offset_params) { \
    typedef ssize_t (*type)(int, const void *, size_t offset_params); \
    REAL(type, name);                                                 \
    int how = hit(fd, 1);                                             \
    if (how == 3) size /= 2;                                          \
    FINISH(real(fd, data, size offset_args))                          \
  }
#define COMMA ,
WRITE(write, , )
WRITE(pwrite, COMMA off_t at, COMMA at)
WRITE(pwrite64, COMMA off64_t at, COMMA at)

#define READ(name, offset_type)                                       \
  ssize_t name(int fd, void *data, size_t size, offset_type at) {     \
    typedef ssize_t (*type)(int, void *, size_t, offset_type);        \
    REAL(type, name);                                                 \
    int how = hit(fd, 0);                                             \
    FINISH(real(fd, data, size, at))                                  \
  }
READ(pread, off_t)
READ(pread64, off64_t)

#define FD(name, extra_params, extra_args, uses_space) \
  int name(int fd extra_params) {                      \
    typedef int (*type)(int extra_params);             \
    REAL(type, name);                                  \
    int how = hit(fd, uses_space);                     \
    FINISH(real(fd extra_args))                        \
  }
FD(fsync, , , 0)
FD(fdatasync, , , 0)
FD(ftruncate, COMMA off_t to, COMMA to, 1)
FD(ftruncate64, COMMA off64_t to, COMMA to, 1)

#define PATHS(name, params, args)       \
  int name params {                     \
    typedef int(*type) params;          \
    REAL(type, name);                   \
    int how = hit(-1, 0);               \
    FINISH(real args)                   \
  }
PATHS(rename, (const char *from, const char *to), (from, to))
PATHS(unlink, (const char *path), (path))

#define OPEN(name)                                  \
  int name(const char *path, int flags, ...) {      \
    typedef int (*type)(const char *, int, ...);    \
    REAL(type, name);                               \
    va_list list;                                   \
    va_start(list, flags);                          \
    mode_t bits = flags & O_CREAT ? va_arg(list, mode_t) : 0; \
    va_end(list);                                   \
    int how = hit(-1, (flags & O_CREAT) != 0);      \
    FINISH(real(path, flags, bits))                 \
  }
OPEN(open)
OPEN(open64)
