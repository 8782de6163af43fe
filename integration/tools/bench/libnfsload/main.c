/*
 * libnfsload URL CONNECTIONS: load on an NFS server through libnfs, with many
 * calls in flight on each connection.
 *
 * It mounts URL (nfs://host/path?version=3&...) once for each connection and
 * then reads jobs from the standard input, one a line:
 *
 *	OP NAME [KEY=VALUE]...
 *
 * and answers each with one line of JSON: {"ops":N,"seconds":S} or
 * {"error":"..."}. NAME is a file or directory in the root of the export. The
 * operations and their keys:
 *
 *	mkdir        makes the directory NAME
 *	create       CREATE, guarded, of files in NAME: file-%08d from first on
 *	unlink       REMOVE of the same
 *	getattr      GETATTR of NAME
 *	lookup       LOOKUP in NAME of any of count files from first on
 *	stat         nfs_stat64_async of /NAME/FILE, any of count from first on
 *	read         READ of bytes in turn; NAME has count times as many
 *	randomread   READ of bytes at any multiple of bytes
 *	write        makes NAME, unstable WRITE of bytes in turn, then a COMMIT
 *	syncwrite    WRITE of bytes, FILE_SYNC, at any multiple of bytes; NAME has
 *	             count times as many
 *	remove       REMOVE of NAME from the root
 *	list         READDIRPLUS, bytes at a time; ops are entries. Each
 *	             connection lists all of NAME again and again
 *	opendir      nfs_opendir_async of NAME likewise
 *
 *	connections  how many are used (1), each by a thread of its own
 *	depth        calls in flight on each (1)
 *	seconds      no call is sent after that time (none: no limit)
 *	limit        no more calls than that (none: no limit)
 *
 * The operations are the raw calls of libnfs, one RPC each, but for stat and
 * opendir, which are as many RPCs as libnfs makes of them. Any failure of a
 * call ends the job, and that of a connection the program.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

enum {
	MAX_CONNECTIONS = 64, /* far above what a row asks for */
	MAX_LINE = 1024,      /* longest job */
	MAX_NAME = 256,
	MAX_PATH = 2 * MAX_NAME + 2,
	MAX_BYTES = 4 << 20,  /* largest READ or WRITE */
	POLL_MS = 120 * 1000, /* a server that is silent for that long is stuck */
};

struct job {
	char op[32], name[MAX_NAME];
	uint64_t first, count, bytes, limit;
	int connections, depth;
	double seconds;

	double begin;
	struct nfs_fh3 handle;      /* of NAME */
	char *data;                 /* what is written */
	_Atomic uint64_t next;      /* number of the next call */
	_Atomic bool failed;
};

/* conn is one connection: a libnfs context, used by one thread at a time. */
struct conn {
	struct nfs_context *nfs;
	struct rpc_context *rpc;
	pthread_t thread;
	struct job *job;
	bool (*send)(struct conn *, uint64_t i);
	int in_flight;
	uint64_t done;
	uint64_t random;            /* state of the generator */
	cookie3 cookie;             /* of a listing */
	cookieverf3 verifier;
	char error[512];            /* empty: none */
	bool broken;                /* of no use any more */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool fail(struct conn *c, const char *format, ...)
{
	va_list args;

	if (!c->error[0]) {
		va_start(args, format);
		vsnprintf(c->error, sizeof(c->error), format, args);
		va_end(args);
	}
	if (c->job)
		c->job->failed = true;
	return false;
}

/* random_below is xorshift64*: rand() has a lock and 31 bits. */
static uint64_t random_below(struct conn *c, uint64_t n)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return (c->random * 0x2545f4914f6cdd1dULL >> 11) % n;
}

static void file_name(char *name, uint64_t i)
{
	snprintf(name, MAX_NAME, "file-%08llu", (unsigned long long)i);
}

/* fill keeps depth calls in flight while the job is not at its end. */
static void fill(struct conn *c)
{
	struct job *j = c->job;

	while (c->in_flight < j->depth && !j->failed) {
		uint64_t i;

		if (j->seconds && now() - j->begin >= j->seconds)
			return;
		i = atomic_fetch_add(&j->next, 1);
		if (j->limit && i >= j->limit)
			return;
		if (!c->send(c, i))
			return;
		c->in_flight++;
	}
}

/* answered counts an answer and sends the next call. */
static bool answered(struct conn *c, int status, void *data, int nfs_status)
{
	c->in_flight--;
	if (status != RPC_STATUS_SUCCESS)
		return fail(c, "RPC status %d: %s", status, status == RPC_STATUS_ERROR ? (char *)data : "no answer");
	if (nfs_status != NFS3_OK)
		return fail(c, "%s", nfsstat3_to_str(nfs_status));
	return true;
}

/* plain takes the answer to a call of which only the status counts: every
 * result begins with it. */
static void plain(struct rpc_context *rpc, int status, void *data, void *private)
{
	struct conn *c = private;

	(void)rpc;
	if (!answered(c, status, data, status == RPC_STATUS_SUCCESS ? *(nfsstat3 *)data : NFS3_OK))
		return;
	c->done++;
	fill(c);
}

static bool queued(struct conn *c, int result)
{
	return result == 0 || fail(c, "%s", rpc_get_error(c->rpc));
}

static bool send_create(struct conn *c, uint64_t i)
{
	char name[MAX_NAME];
	struct CREATE3args args = {0};
	struct sattr3 *attributes = &args.how.createhow3_u.g_obj_attributes;

	file_name(name, c->job->first + i);
	args.where.dir = c->job->handle;
	args.where.name = name;
	args.how.mode = GUARDED;
	attributes->mode.set_it = 1;
	attributes->mode.set_mode3_u.mode = 0644;
	return queued(c, rpc_nfs3_create_async(c->rpc, plain, &args, c));
}

static bool send_unlink(struct conn *c, uint64_t i)
{
	char name[MAX_NAME];
	struct REMOVE3args args = {{c->job->handle, name}};

	file_name(name, c->job->first + i);
	return queued(c, rpc_nfs3_remove_async(c->rpc, plain, &args, c));
}

static bool send_getattr(struct conn *c, uint64_t i)
{
	struct GETATTR3args args = {c->job->handle};

	(void)i;
	return queued(c, rpc_nfs3_getattr_async(c->rpc, plain, &args, c));
}

static bool send_lookup(struct conn *c, uint64_t i)
{
	char name[MAX_NAME];
	struct LOOKUP3args args = {{c->job->handle, name}};

	(void)i;
	file_name(name, c->job->first + random_below(c, c->job->count));
	return queued(c, rpc_nfs3_lookup_async(c->rpc, plain, &args, c));
}

static void read_answered(struct rpc_context *rpc, int status, void *data, void *private)
{
	struct conn *c = private;
	struct READ3res *res = data;

	if (status == RPC_STATUS_SUCCESS && res->status == NFS3_OK &&
	    res->READ3res_u.resok.data.data_len != c->job->bytes)
		fail(c, "READ of %llu bytes gives %u", (unsigned long long)c->job->bytes,
		     res->READ3res_u.resok.data.data_len);
	plain(rpc, status, data, c);
}

static bool send_read_of(struct conn *c, uint64_t block)
{
	struct READ3args args = {c->job->handle, block * c->job->bytes, c->job->bytes};

	return queued(c, rpc_nfs3_read_async(c->rpc, read_answered, &args, c));
}

static bool send_read(struct conn *c, uint64_t i)
{
	return send_read_of(c, i % c->job->count);
}

static bool send_randomread(struct conn *c, uint64_t i)
{
	(void)i;
	return send_read_of(c, random_below(c, c->job->count));
}

static void write_answered(struct rpc_context *rpc, int status, void *data, void *private)
{
	struct conn *c = private;
	struct WRITE3res *res = data;

	if (status == RPC_STATUS_SUCCESS && res->status == NFS3_OK && res->WRITE3res_u.resok.count != c->job->bytes)
		fail(c, "WRITE of %llu bytes took %u", (unsigned long long)c->job->bytes, res->WRITE3res_u.resok.count);
	plain(rpc, status, data, c);
}

static bool send_write(struct conn *c, uint64_t i)
{
	struct job *j = c->job;
	struct WRITE3args args = {j->handle, i * j->bytes, j->bytes, UNSTABLE, {j->bytes, j->data}};

	return queued(c, rpc_nfs3_write_async(c->rpc, write_answered, &args, c));
}

static bool send_syncwrite(struct conn *c, uint64_t i)
{
	struct job *j = c->job;
	uint64_t block = random_below(c, j->count);
	struct WRITE3args args = {j->handle, block * j->bytes, j->bytes, FILE_SYNC, {j->bytes, j->data}};

	(void)i;
	return queued(c, rpc_nfs3_write_async(c->rpc, write_answered, &args, c));
}

static void stat_answered(int status, struct nfs_context *nfs, void *data, void *private)
{
	struct conn *c = private;

	(void)nfs;
	c->in_flight--;
	if (status < 0) {
		fail(c, "stat: %s: %s", strerror(-status), (char *)data);
		return;
	}
	c->done++;
	fill(c);
}

static bool send_stat(struct conn *c, uint64_t i)
{
	char name[MAX_NAME], path[MAX_PATH];

	(void)i;
	file_name(name, c->job->first + random_below(c, c->job->count));
	snprintf(path, sizeof(path), "/%s/%s", c->job->name, name);
	if (nfs_stat64_async(c->nfs, path, stat_answered, c) != 0)
		return fail(c, "stat: %s", nfs_get_error(c->nfs));
	return true;
}

static void list_answered(struct rpc_context *rpc, int status, void *data, void *private)
{
	struct conn *c = private;
	struct READDIRPLUS3res *res = data;
	struct READDIRPLUS3resok *ok;

	(void)rpc;
	if (!answered(c, status, data, status == RPC_STATUS_SUCCESS ? res->status : NFS3_OK))
		return;
	ok = &res->READDIRPLUS3res_u.resok;
	memcpy(c->verifier, ok->cookieverf, sizeof(c->verifier));
	for (struct entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
		c->cookie = e->cookie;
		c->done++;
	}
	if (ok->reply.eof) {
		c->cookie = 0;
		memset(c->verifier, 0, sizeof(c->verifier));
	}
	fill(c);
}

static bool send_list(struct conn *c, uint64_t i)
{
	struct READDIRPLUS3args args = {c->job->handle, c->cookie, {0}, c->job->bytes, c->job->bytes};

	(void)i;
	memcpy(args.cookieverf, c->verifier, sizeof(args.cookieverf));
	return queued(c, rpc_nfs3_readdirplus_async(c->rpc, list_answered, &args, c));
}

static void opendir_answered(int status, struct nfs_context *nfs, void *data, void *private)
{
	struct conn *c = private;

	c->in_flight--;
	if (status < 0) {
		fail(c, "opendir: %s: %s", strerror(-status), (char *)data);
		return;
	}
	while (nfs_readdir(nfs, data))
		c->done++;
	nfs_closedir(nfs, data);
	fill(c);
}

static bool send_opendir(struct conn *c, uint64_t i)
{
	char path[MAX_NAME + 1];

	(void)i;
	snprintf(path, sizeof(path), "/%s", c->job->name);
	if (nfs_opendir_async(c->nfs, path, opendir_answered, c) != 0)
		return fail(c, "opendir: %s", nfs_get_error(c->nfs));
	return true;
}

static const struct op {
	const char *name;
	bool (*send)(struct conn *, uint64_t i);
} ops[] = {
	{"create", send_create},
	{"unlink", send_unlink},
	{"getattr", send_getattr},
	{"lookup", send_lookup},
	{"read", send_read},
	{"randomread", send_randomread},
	{"write", send_write},
	{"syncwrite", send_syncwrite},
	{"stat", send_stat},
	{"list", send_list},
	{"opendir", send_opendir},
};

/* serve runs one connection until nothing is in flight any more, after a
 * failure too: the next job must not see these answers. */
static void *serve(void *arg)
{
	struct conn *c = arg;

	fill(c);
	while (c->in_flight > 0 && !c->broken) {
		struct pollfd p = {nfs_get_fd(c->nfs), nfs_which_events(c->nfs), 0};
		int n = poll(&p, 1, POLL_MS);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			c->broken = !fail(c, "poll: %s", n ? strerror(errno) : "no answer in time");
		else if (nfs_service(c->nfs, p.revents) < 0)
			c->broken = !fail(c, "%s", nfs_get_error(c->nfs));
	}
	return NULL;
}

/* handle_of looks NAME up. What libnfs has of an open file begins with its
 * handle; the file stays open as long as the handle is used. */
static bool handle_of(struct conn *c, const char *name, struct nfsfh **open, struct nfs_fh3 *handle)
{
	char path[MAX_NAME + 1];

	snprintf(path, sizeof(path), "/%s", name);
	if (nfs_open(c->nfs, path, 0, open) < 0)
		return fail(c, "open %s: %s", path, nfs_get_error(c->nfs));
	*handle = *(struct nfs_fh3 *)nfs_get_fh(*open);
	return true;
}

/* start makes what the job is about, if it does not exist before. */
static bool start(struct conn *c, struct job *j, struct nfsfh **open)
{
	char path[MAX_NAME + 1];
	bool makes = strcmp(j->op, "write") == 0;

	snprintf(path, sizeof(path), "/%s", j->name);
	if (!makes && strcmp(j->op, "syncwrite") != 0)
		return handle_of(c, j->name, open, &j->handle);
	if (!(j->data = malloc(j->bytes)))
		return fail(c, "no memory for %llu bytes", (unsigned long long)j->bytes);
	for (uint64_t i = 0; i < j->bytes; i++)
		j->data[i] = random_below(c, 256);
	if (!makes)
		return handle_of(c, j->name, open, &j->handle);
	if (nfs_creat(c->nfs, path, 0644, open) < 0)
		return fail(c, "create %s: %s", path, nfs_get_error(c->nfs));
	j->handle = *(struct nfs_fh3 *)nfs_get_fh(*open);
	return true;
}

/* run does a job on its connections; the time is the calls' alone. */
static bool run(struct conn *conns, struct job *j, const struct op *op, double *seconds, uint64_t *done)
{
	struct conn *first = &conns[0];
	struct nfsfh *open = NULL;
	int threads = 0;

	if (!start(first, j, &open))
		goto end;
	j->begin = now();
	for (; threads < j->connections; threads++) {
		struct conn *c = &conns[threads];

		c->job = j;
		c->send = op->send;
		c->in_flight = 0;
		c->done = 0;
		c->cookie = 0;
		memset(c->verifier, 0, sizeof(c->verifier));
		if ((errno = pthread_create(&c->thread, NULL, serve, c)) != 0) {
			fail(c, "thread: %s", strerror(errno));
			break;
		}
	}
	*done = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(conns[i].thread, NULL);
		*done += conns[i].done;
		if (conns[i].error[0])
			fail(first, "%s", conns[i].error);
	}
	if (!first->error[0] && j->data && nfs_fsync(first->nfs, open) < 0)
		fail(first, "commit: %s", nfs_get_error(first->nfs));
	*seconds = now() - j->begin;
end:
	if (open)
		nfs_close(first->nfs, open);
	free(j->data);
	return !first->error[0];
}

static bool once(struct conn *c, const char *name, int (*call)(struct nfs_context *, const char *))
{
	char path[MAX_NAME + 1];

	snprintf(path, sizeof(path), "/%s", name);
	return call(c->nfs, path) == 0 || fail(c, "%s: %s", path, nfs_get_error(c->nfs));
}

/* parse reads a job. */
static bool parse(struct conn *c, char *line, struct job *j)
{
	char *word, *rest = line;

	memset(j, 0, sizeof(*j));
	j->connections = j->depth = 1;
	j->count = j->bytes = 1;
	for (int i = 0; (word = strtok_r(i ? NULL : line, " \n", &rest)); i++) {
		char *value = strchr(word, '=');

		if (i < 2) {
			snprintf(i ? j->name : j->op, i ? sizeof(j->name) : sizeof(j->op), "%s", word);
			continue;
		}
		if (!value)
			return fail(c, "%s has no value", word);
		*value++ = 0;
		if (!strcmp(word, "first"))
			j->first = strtoull(value, NULL, 10);
		else if (!strcmp(word, "count"))
			j->count = strtoull(value, NULL, 10);
		else if (!strcmp(word, "bytes"))
			j->bytes = strtoull(value, NULL, 10);
		else if (!strcmp(word, "limit"))
			j->limit = strtoull(value, NULL, 10);
		else if (!strcmp(word, "connections"))
			j->connections = atoi(value);
		else if (!strcmp(word, "depth"))
			j->depth = atoi(value);
		else if (!strcmp(word, "seconds"))
			j->seconds = strtod(value, NULL);
		else
			return fail(c, "unknown key %s", word);
	}
	if (!j->name[0])
		return fail(c, "a job is OP NAME [KEY=VALUE]...");
	if (j->bytes < 1 || j->bytes > MAX_BYTES || j->count < 1 || j->depth < 1)
		return fail(c, "bytes, count or depth out of range");
	return true;
}

/* obey does one job and tells what came of it. */
static void obey(struct conn *conns, int connections, char *line)
{
	static struct job j;
	struct conn *c = &conns[0];
	double seconds = 0;
	uint64_t done = 1;

	for (int i = 0; i < connections; i++) {
		conns[i].job = NULL;
		conns[i].error[0] = 0;
	}
	if (!parse(c, line, &j))
		goto end;
	if (j.connections < 1 || j.connections > connections) {
		fail(c, "%d connections of %d", j.connections, connections);
	} else if (!strcmp(j.op, "mkdir")) {
		once(c, j.name, nfs_mkdir);
	} else if (!strcmp(j.op, "remove")) {
		once(c, j.name, nfs_unlink);
	} else {
		const struct op *op = NULL;

		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			if (!strcmp(ops[i].name, j.op))
				op = &ops[i];
		if (!op)
			fail(c, "unknown operation %s", j.op);
		else
			run(conns, &j, op, &seconds, &done);
	}
end:
	if (c->error[0]) {
		for (char *p = c->error; *p; p++)
			if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
				*p = '\'';
		printf("{\"error\":\"%s\"}\n", c->error);
	} else {
		printf("{\"ops\":%llu,\"seconds\":%.6f}\n", (unsigned long long)done, seconds);
	}
	fflush(stdout);
}

/* mount_one connects; libnfs's own caches are off. */
static bool mount_one(struct conn *c, const char *text)
{
	struct nfs_url *url;
	bool ok;

	if (!(c->nfs = nfs_init_context()))
		return fail(c, "no memory for a context");
	c->rpc = nfs_get_rpc_context(c->nfs);
	nfs_set_dircache(c->nfs, 0);
	if (!(url = nfs_parse_url_dir(c->nfs, text)))
		return fail(c, "%s: %s", text, nfs_get_error(c->nfs));
	ok = nfs_mount(c->nfs, url->server, url->path) == 0 || fail(c, "mount: %s", nfs_get_error(c->nfs));
	nfs_destroy_url(url);
	return ok;
}

int main(int argc, char **argv)
{
	static struct conn conns[MAX_CONNECTIONS];
	char line[MAX_LINE];
	int connections = argc == 3 ? atoi(argv[2]) : 0;

	if (connections < 1 || connections > MAX_CONNECTIONS) {
		fprintf(stderr, "usage: libnfsload URL CONNECTIONS (1 to %d)\n", MAX_CONNECTIONS);
		return 2;
	}
	for (int i = 0; i < connections; i++) {
		conns[i].random = i + 1;
		if (!mount_one(&conns[i], argv[1])) {
			fprintf(stderr, "libnfsload: %s\n", conns[i].error);
			return 1;
		}
	}
	printf("{\"ops\":0,\"seconds\":0}\n"); /* ready */
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		obey(conns, connections, line);
		for (int i = 0; i < connections; i++)
			if (conns[i].broken)
				return 1;
	}
	for (int i = 0; i < connections; i++)
		nfs_destroy_context(conns[i].nfs);
	return 0;
}
