package vfs

import (
	"encoding/binary"
	"fmt"
)

// FormatVersion is the version of all stored keys and values of this
// package. It stands in the superblock; a store with a greater one is
// refused, one with a smaller one is converted when it is opened (convert.go).
const FormatVersion = 2

// All stored keys. The first byte is the table; numbers are 8 bytes
// big-endian unless stated. Keys from 0xFF on belong to the engine.
//
//	key                                  value
//	'S'                                  superblock (super.go)
//	'C' counter name                     next free number
//	'i' ino                              inode (inode.go)
//	'n' parent name                      dentry of anything but a directory (dentry.go)
//	'n' parent name '/'                  dentry of a directory
//	't' ino                              times of a directory's entries, written blindly
//	'x' ino attribute name               extended attribute
//	'l' ino parent name                  empty; every link of an inode with more than one
//	'h' parent hash(20)                  name of an entry that POSIX shows under its hash
//	'e' content offset                   extent (extent.go); offset within the content
//	's' content                          content that no inode holds alone: shared or being staged
//	'r' source user                      empty; content user names extents of content source
//	'q' due time, id                     deletion that waits for the collector (queue.go)
//	'o' ino                              inode without links that a process has open
//	'm' bucket ino, key (escaped), upload  multipart upload
//	'M' upload                           the key of its 'm' record
//	'p' upload part(4)                   part of an upload
//	'b' ino                              bucket attributes: creation, owner, ACL
//	'U' ID                               user and its access keys (userrecord.go); stays when the user is removed
//	'u' name                             ID of the user who has it
//	'I' uid(4)                           ID of the user who has it, or had it last
//	'k' access key                       ID of the user who holds it
//	'd' slot(2)                          request that was done last, of those that share the slot (once.go)
//	'g' name                             settings kept in the store (exports and the like)
//	'K' name                             secret of the store's own (storesecret.go)
//	'z' content blob                     blob in quarantine, JSON (quarantine.go)
const (
	tabSuper    = 'S'
	tabCounter  = 'C'
	tabInode    = 'i'
	tabDentry   = 'n'
	tabDirTime  = 't'
	tabXattr    = 'x'
	tabLink     = 'l'
	tabLongName = 'h'
	tabExtent   = 'e'
	tabContent  = 's'
	tabRef      = 'r'
	tabQueue    = 'q'
	tabOrphan   = 'o'
	tabUpload   = 'm'
	tabUploadID = 'M'
	tabPart     = 'p'
	tabBucket   = 'b'
	tabUser     = 'U'
	tabUserName = 'u'
	tabUID      = 'I'
	tabAccess   = 'k'
	tabOnce     = 'd'
	tabSetting  = 'g'
	tabSecret   = 'K'
	tabDamaged  = 'z'
)

// key1Bytes is the length of a key of a table and a number.
const key1Bytes = 1 + 8

func key1(tab byte, a uint64) []byte {
	b := make([]byte, 0, key1Bytes)
	return binary.BigEndian.AppendUint64(append(b, tab), a)
}

func key2(tab byte, a, b uint64) []byte {
	k := binary.BigEndian.AppendUint64(append(make([]byte, 0, 17), tab), a)
	return binary.BigEndian.AppendUint64(k, b)
}

func keyStr(tab byte, a uint64, s string) []byte {
	k := binary.BigEndian.AppendUint64(append(make([]byte, 0, 10+len(s)), tab), a)
	return append(k, s...)
}

func superKey() []byte                        { return []byte{tabSuper} }
func counterKey(name string) []byte           { return append([]byte{tabCounter}, name...) }
func inodeKey(ino Ino) []byte                 { return key1(tabInode, uint64(ino)) }
func fileEntryKey(p Ino, name string) []byte  { return keyStr(tabDentry, uint64(p), name) }
func dirEntryKey(p Ino, name string) []byte   { return append(keyStr(tabDentry, uint64(p), name), '/') }
func dentryPrefix(p Ino) []byte               { return key1(tabDentry, uint64(p)) }
func dirTimeKey(ino Ino) []byte               { return key1(tabDirTime, uint64(ino)) }
func xattrKey(ino Ino, name string) []byte    { return keyStr(tabXattr, uint64(ino), name) }
func xattrPrefix(ino Ino) []byte              { return key1(tabXattr, uint64(ino)) }
func linkPrefix(ino Ino) []byte               { return key1(tabLink, uint64(ino)) }
func extentKey(c ContentID, off int64) []byte { return key2(tabExtent, uint64(c), uint64(off)) }
func extentPrefix(c ContentID) []byte         { return key1(tabExtent, uint64(c)) }
func contentKey(c ContentID) []byte           { return key1(tabContent, uint64(c)) }
func refKey(source, user ContentID) []byte    { return key2(tabRef, uint64(source), uint64(user)) }
func refPrefix(source ContentID) []byte       { return key1(tabRef, uint64(source)) }
func queueKey(dueNS int64, id uint64) []byte  { return key2(tabQueue, uint64(dueNS), id) }
func orphanKey(ino Ino) []byte                { return key1(tabOrphan, uint64(ino)) }
func bucketKey(ino Ino) []byte                { return key1(tabBucket, uint64(ino)) }
func userKey(id UserID) []byte                { return append([]byte{tabUser}, id...) }
func userNameKey(name string) []byte          { return append([]byte{tabUserName}, name...) }
func uidKey(uid uint32) []byte                { return binary.BigEndian.AppendUint32([]byte{tabUID}, uid) }
func accessKey(id string) []byte              { return append([]byte{tabAccess}, id...) }
func onceKey(slot uint16) []byte              { return []byte{tabOnce, byte(slot >> 8), byte(slot)} }
func settingKey(name string) []byte           { return append([]byte{tabSetting}, name...) }
func storeSecretKey(name string) []byte       { return append([]byte{tabSecret}, name...) }

func linkKey(ino, parent Ino, name string) []byte {
	k := append(make([]byte, 0, 17+len(name)), linkPrefix(ino)...)
	k = binary.BigEndian.AppendUint64(k, uint64(parent))
	return append(k, name...)
}

func partKey(upload ContentID, number int) []byte {
	return binary.BigEndian.AppendUint32(key1(tabPart, uint64(upload)), uint32(number))
}

func partPrefix(upload ContentID) []byte  { return key1(tabPart, uint64(upload)) }
func uploadIDKey(upload ContentID) []byte { return key1(tabUploadID, uint64(upload)) }
func uploadPrefix(bucket Ino) []byte      { return key1(tabUpload, uint64(bucket)) }

// uploadKey orders the uploads of a bucket by key, then by upload: a zero
// byte in the key becomes 0x00 0xFF and the key ends with 0x00 0x01.
func uploadKey(bucket Ino, key string, upload ContentID) []byte {
	k := appendEscaped(uploadPrefix(bucket), key)
	return binary.BigEndian.AppendUint64(append(k, 0, 1), uint64(upload))
}

func appendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return b
}

// parseUploadKey is the inverse of uploadKey.
func parseUploadKey(k []byte) (bucket Ino, key string, upload ContentID, err error) {
	bad := fmt.Errorf("%w: upload key %x", ErrCorrupt, k)
	if len(k) < 9+2+8 || k[0] != tabUpload {
		return 0, "", 0, bad
	}
	bucket = Ino(binary.BigEndian.Uint64(k[1:]))
	upload = ContentID(binary.BigEndian.Uint64(k[len(k)-8:]))
	body := k[9 : len(k)-8]
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		if body[i] != 0 {
			out = append(out, body[i])
			continue
		}
		if i+1 >= len(body) {
			return 0, "", 0, bad
		}
		i++
		switch body[i] {
		case 0xff:
			out = append(out, 0)
		case 1:
			if i != len(body)-1 {
				return 0, "", 0, bad
			}
			return bucket, string(out), upload, nil
		default:
			return 0, "", 0, bad
		}
	}
	return 0, "", 0, bad
}

// parseLinkKey is the inverse of linkKey, without the inode.
func parseLinkKey(k []byte) (parent Ino, name string, err error) {
	if len(k) < 17 || k[0] != tabLink {
		return 0, "", fmt.Errorf("%w: link key %x", ErrCorrupt, k)
	}
	return Ino(binary.BigEndian.Uint64(k[9:])), string(k[17:]), nil
}
