// Package apps runs programs that people run on file systems on an ogw mount
// of the real binary: git, sqlite, tar, rsync, the Go toolchain and fio.
package apps
