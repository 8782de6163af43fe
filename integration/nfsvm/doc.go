// Package nfsvm boots Debian's Linux kernel in qemu, so that the tests can
// use the kernel's own NFS client against a server of this host.
//
//	test ── Boot(script, port) ── qemu ── guest.sh ── mount -t nfs
//	  ▲                                        │          │
//	  └── output, line by line; "@host WORD" ◄─┘          │
//	  server on 127.0.0.1:port ◄── one socat a connection ┘
//
// The guest reaches nothing but that one port, at 10.0.2.100:2049; locks, where
// the server calls the client too, have a tap device in a network namespace
// with the server, its rpcbind and nothing else. The guest has no
// disk; its files are in memory. The processor is emulated, so the figures
// say nothing about speed.
//
// The sizes of the tests are those that people ask about: the sources of the
// toolchain, a file of 4 GiB, 100,000 files in a directory. On a slow machine
// they can be made smaller, with OGW_TEST_VM_TREE (a folder below the
// sources), OGW_TEST_VM_BYTES, OGW_TEST_VM_FILES, OGW_TEST_VM_CLONES,
// OGW_TEST_VM_TRANSACTIONS, OGW_TEST_VM_CHANGES and OGW_TEST_VM_UNCOMMITTED
// (bytes).
package nfsvm
