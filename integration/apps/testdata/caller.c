/*
 * caller CALL RESTART FILE: makes one system call on FILE when a line comes on
 * standard input, and says what became of it. C, since runtimes of other
 * languages use signals themselves and repeat calls that one interrupted.
 *
 * SIGUSR1 has a handler, with SA_RESTART if RESTART is 1. Lines that it
 * prints: "ready", "signal" from the handler, and at the end
 * "result ERRNO SIGNALS".
 *
 * "thread-" before CALL has it made by a second thread, while the first blocks
 * SIGUSR1.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void on_signal(int sig) {
	(void)sig;
	signals++;
	if (write(1, "signal\n", 7) != 7)
		_exit(3);
}

static void on_fault(int sig) {
	(void)sig;
	if (write(1, "result bus 0\n", 13) != 13)
		_exit(3);
	_exit(0);
}

static int lock(int fd, int cmd) {
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, cmd, &l);
}

static int all(ssize_t n, size_t want) {
	if (n >= 0 && (size_t)n != want) {
		errno = ERANGE; /* a part only */
		return -1;
	}
	return n < 0 ? -1 : 0;
}

static char buf[1 << 20];

static int run(const char *call, const char *file);

struct work {
	const char *call, *file;
};

static void *in_thread(void *arg) {
	struct work *w = arg;
	exit(run(w->call, w->file));
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	const char *call = argv[1], *file = argv[3];
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = argv[2][0] == '1' ? SA_RESTART : 0};
	struct sigaction bus = {.sa_handler = on_fault};
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGBUS, &bus, NULL);
	if (strncmp(call, "thread-", 7) == 0) {
		struct work w = {call + 7, file};
		pthread_t thread;
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		if (pthread_create(&thread, NULL, in_thread, &w) != 0 || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
			return 2;
		pthread_join(thread, NULL); /* it ends the process */
		return 2;
	}
	return run(call, file);
}

static int run(const char *call, const char *file) {
	char other[4200], line[16];
	snprintf(other, sizeof other, "%s.%d", file, (int)getpid());
	int fd = open(file, O_RDWR), sync_fd = -1;
	if (fd < 0) {
		perror(file);
		return 2;
	}
	volatile char *map = NULL;
	if (strcmp(call, "load") == 0)
		map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (strcmp(call, "rename") == 0 || strcmp(call, "unlink") == 0)
		close(open(other, O_CREAT | O_WRONLY, 0644));
	if (strcmp(call, "fsync") == 0 || strcmp(call, "close") == 0) {
		sync_fd = open(other, O_CREAT | O_WRONLY, 0644);
		if (write(sync_fd, buf, 5000) != 5000)
			return 2;
	}
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 2;

	int r = -2;
	errno = 0;
	if (strcmp(call, "open") == 0)
		r = open(other, O_RDONLY) >= 0 || errno == ENOENT ? 0 : -1;
	else if (strcmp(call, "create") == 0)
		r = open(other, O_CREAT | O_EXCL | O_RDWR, 0644) < 0 ? -1 : 0;
	else if (strcmp(call, "read") == 0)
		r = all(pread(fd, buf, sizeof buf, 0), sizeof buf);
	else if (strcmp(call, "write") == 0)
		r = all(pwrite(fd, buf, sizeof buf, 0), sizeof buf);
	else if (strcmp(call, "fsync") == 0)
		r = fsync(sync_fd);
	else if (strcmp(call, "close") == 0)
		r = close(sync_fd);
	else if (strcmp(call, "rename") == 0) {
		char to[4300];
		snprintf(to, sizeof to, "%s-to", other);
		r = rename(other, to);
	} else if (strcmp(call, "unlink") == 0)
		r = unlink(other);
	else if (strcmp(call, "mkdir") == 0)
		r = mkdir(other, 0755);
	else if (strcmp(call, "truncate") == 0)
		r = ftruncate(fd, sizeof buf);
	else if (strcmp(call, "setxattr") == 0)
		r = fsetxattr(fd, "user.a", "a", 1, 0);
	else if (strcmp(call, "statfs") == 0) {
		struct statvfs v;
		r = fstatvfs(fd, &v);
	} else if (strcmp(call, "readdir") == 0) {
		char *slash = strrchr(other, '/');
		*slash = 0;
		DIR *d = opendir(other);
		r = -1;
		if (d) {
			errno = 0;
			r = readdir(d) ? 0 : -1;
		}
	} else if (strcmp(call, "load") == 0) {
		buf[0] = map[0];
		r = 0;
	} else if (strcmp(call, "flock") == 0)
		r = flock(fd, LOCK_EX);
	else if (strcmp(call, "setlkw") == 0)
		r = lock(fd, F_SETLKW);
	else if (strcmp(call, "ofdlock") == 0)
		r = lock(fd, F_OFD_SETLKW);
	else if (strcmp(call, "flock-now") == 0)
		r = flock(fd, LOCK_EX | LOCK_NB);
	else if (strcmp(call, "setlk-now") == 0)
		r = lock(fd, F_SETLK);
	else if (strcmp(call, "ofdlock-now") == 0)
		r = lock(fd, F_OFD_SETLK);
	else
		return 2;
	int e = r == 0 ? 0 : errno;
	printf("result %d %d\n", e, (int)signals);
	fflush(stdout);
	if (strstr(call, "lock") || strstr(call, "setlk")) /* keeps the lock until somebody ends it */
		if (!fgets(line, sizeof line, stdin))
			return 0;
	return 0;
}
