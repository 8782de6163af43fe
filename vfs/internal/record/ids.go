package record

// Ino is an inode number. Numbers are never used twice in one store, so an
// inode number alone identifies a file for good.
type Ino uint64

// RootIno is the directory whose entries are the buckets.
const RootIno Ino = 1

// ContentID names a content: the bytes of a file at one time. IDs share one
// number space with inodes and are never used twice.
type ContentID uint64
