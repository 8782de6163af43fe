// Command ogw is a gateway in front of an object storage cluster: one
// namespace through S3, REST, NFS and FUSE.
//
//	main ── app ── command: ParseFlags, Validate, Run
//	                 │
//	                 ├─ serve, mount ── server.Open: the running process
//	                 └─ all others ── session ─┬─ admin socket of that process
//	                                           └─ server.OpenLocal: the store, if
//	                                              nobody serves it
//
// Here are flags, what is printed, and exit codes. What a running process is, stands
// in package server, its mounts in mounts, its configuration in config.
package main
