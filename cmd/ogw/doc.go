// Command ogw is a gateway in front of an object storage cluster: one
// namespace through S3, REST, NFS and FUSE.
//
//	main ── app ── command: ParseFlags, Validate, Run
//	                 │
//	                 ├─ serve, mount ── wire ── process: doors, mounts, admin
//	                 └─ all others ── session ─┬─ admin socket of that process
//	                                           └─ the cluster, if nobody serves it
//
// wire (wire.go) is the one function that knows everything: engine,
// decorators, namespace, doors, listeners. Shutting down goes the other way:
// listeners close, doors drain within a bound, mounts end, the namespace
// flushes, the engine closes.
package main
