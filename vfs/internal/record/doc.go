// Package record holds all that a store keeps beside the blobs: every key and
// every value, with its byte layout in the comment beside its codec. Nothing else
// knows how the bytes lie.
//
//	keys.go            the table of all keys; FormatVersion
//	superblock.go      'S'; restoring.go and moved.go what stands there during a
//	                   restore or a move to this store, and after one to another
//	inode.go mode.go   'i'      dentry.go   'n'      dirtime.go  't'
//	extent.go          'e'      content.go  's'      queue.go    'q'
//	orphan.go          'o'      upload.go   'm'      part.go     'p'
//	bucket.go          'b'      counter.go  'C'      done.go     'd'
//	storesecret.go     'K'      damaged.go  'z'      doubt.go    'D'
//	user.go userrecord.go 'U'
//	conversion.go format1.go    what a store of format 1 holds
//
// A codec decodes what it encoded, byte for byte, and returns fserr.ErrCorrupt
// for all else; it never trusts a length. Values that a later program wrote are
// refused by their version byte. A change of a layout is a new FormatVersion, or a
// new version of the record that this program still writes for older fields.
//
// The package has no state and no locks. What Get... and Put... read and write is
// one pair; whole operations are above.
package record
