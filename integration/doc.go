// Package integration drives the real binary with real clients: aws, s3cmd,
// rclone, curl, libnfs, a FUSE mount, and a Linux kernel NFS client in a
// virtual machine. Its tests need what `make deps` installs; without it they
// fail rather than skip, because a test that did not run proves nothing.
//
//	doors    every door in the same words
//	model    random operations through all doors, against a model
//	nfsvm    the virtual machine
//	setup    packages
//	tools    no tests: bench, figures beside the limits of the machine (make bench),
//	         and ratchet (make lint)
package integration
