// Package xattr is what extended attributes are: which names there are, who may read and
// change them, how many an inode has, what those with a meaning do to it (ACLs,
// capabilities), and the ones that are user metadata at the object doors. The stored
// ones have the key 'x', inode, name; record.FlagXattrs says that there may be any.
// Functions work in the transaction or the snapshot that they are given.
package xattr
