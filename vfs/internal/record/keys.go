package record

import (
	"encoding/binary"
	"fmt"
	"strings"

	"ogw/vfs/internal/fserr"
)

// FormatVersion is the version of all stored keys and values of this
// package. It stands in the superblock; a store with a greater one is
// refused, one with a smaller one is converted when it is opened.
const FormatVersion = 3

// All stored keys. The first byte is the table; numbers are 8 bytes
// big-endian unless stated. Keys from 0xFF on belong to the engine.
//
//	key                                  value
//	'S'                                  superblock (superblock.go)
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
//	'r' source user                      random(8), once empty; content user names extents of content source
//	'q' time, id                         deletion that waits for the collector (queue.go)
//	'o' ino                              inode without links that a process has open
//	'm' bucket ino, key (escaped), upload  multipart upload
//	'M' upload                           the key of its 'm' record
//	'p' upload part(4)                   part of an upload
//	'c' slot(2)                          upload completed last, of those that share the slot (completed.go)
//	'b' ino                              bucket attributes: creation, owner, ACL
//	'y' ino                              policy of a bucket (bucketpolicy.go)
//	'U' ID                               user and its access keys (userrecord.go); stays when the user is removed
//	'u' name                             ID of the user who has it
//	'I' uid(4)                           ID of the user or role who has it, or had it last
//	'k' access key                       ID of the user who holds it
//	'A' ID                               policies and groups of a user, group or role (permissions.go)
//	'P' ID                               managed policy (managedpolicy.go)
//	'G' ID                               group (group.go)
//	'a' ID                               role (role.go)
//	'w' URL                              who signs web identities (role.go)
//	'N' kind(4) name                     ID of the group, role or managed policy that has it; the name in lower case
//	'B' ID(21) ID                        1: the second is attached to the first, a policy, or is in it, a group; 2: it is bounded by it; 3: both
//	'R'                                  revision of the policies of identities (permissions.go)
//	'd' slot(2)                          request that was done last, of those that share the slot (done.go)
//	'g' name                             settings kept in the store (exports and the like)
//	'K' name                             secret of the store's own (storesecret.go)
//	'z' content blob                     blob in quarantine, JSON (damaged.go)
//	'F' gateway                          fence of a process that uses the store, JSON (session.go)
//	'H' gateway                          number of its last beat
//	'V' gateway                          what one beside others reads, and the inodes that it uses (session.go)
//	'Y' number                           purge that the gateways are asked for, JSON (purge.go)
//	'Y' number gateway                   what one answers to it, JSON
//	'L' ino                              locks that several gateways grant (locks.go)
//	'W' hash(20) of an owner             inodes in which it waits for a range
//	'D' content blob size crc            empty; blob that a store to which one is being moved can have (doubt.go)
//	'X' client, escaped, 0 1, ino        how much a client that is another machine has of 'L' there
const (
	TabSuper    = 'S'
	TabCounter  = 'C'
	TabInode    = 'i'
	TabDentry   = 'n'
	TabDirTime  = 't'
	TabXattr    = 'x'
	TabLink     = 'l'
	TabLongName = 'h'
	TabExtent   = 'e'
	TabContent  = 's'
	TabRef      = 'r'
	TabQueue    = 'q'
	TabOrphan   = 'o'
	TabUpload   = 'm'
	TabUploadID = 'M'
	TabPart     = 'p'
	TabAnswer   = 'c'
	TabBucket   = 'b'
	TabPolicy   = 'y'
	TabUser     = 'U'
	TabUserName = 'u'
	TabUID      = 'I'
	TabAccess   = 'k'
	TabOnce     = 'd'
	TabPerms    = 'A'
	TabManaged  = 'P'
	TabGroup    = 'G'
	TabRole     = 'a'
	TabProvider = 'w'
	TabIAMName  = 'N'
	TabBacklink = 'B'
	TabRevision = 'R'
	TabSetting  = 'g'
	TabSecret   = 'K'
	TabDamaged  = 'z'
	TabFence    = 'F'
	TabBeat     = 'H'
	TabRead     = 'V'
	TabPurge    = 'Y'
	TabLock     = 'L'
	TabWait     = 'W'
	TabLocker   = 'X'
	TabDoubt    = 'D'
)

// Key1Bytes is the length of a key of a table and a number.
const Key1Bytes = 1 + 8

func key1(tab byte, a uint64) []byte {
	return appendKey1(make([]byte, 0, Key1Bytes), tab, a)
}

func appendKey1(b []byte, tab byte, a uint64) []byte {
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

func SuperKey() []byte                        { return []byte{TabSuper} }
func CounterKey(name string) []byte           { return append([]byte{TabCounter}, name...) }
func InodeKey(ino Ino) []byte                 { return key1(TabInode, uint64(ino)) }
func AppendInodeKey(b []byte, ino Ino) []byte { return appendKey1(b, TabInode, uint64(ino)) }
func FileEntryKey(p Ino, name string) []byte  { return keyStr(TabDentry, uint64(p), name) }
func DirEntryKey(p Ino, name string) []byte   { return append(keyStr(TabDentry, uint64(p), name), '/') }
func DentryPrefix(p Ino) []byte               { return key1(TabDentry, uint64(p)) }
func DirTimeKey(ino Ino) []byte               { return key1(TabDirTime, uint64(ino)) }
func XattrKey(ino Ino, name string) []byte    { return keyStr(TabXattr, uint64(ino), name) }
func XattrPrefix(ino Ino) []byte              { return key1(TabXattr, uint64(ino)) }
func LinkPrefix(ino Ino) []byte               { return key1(TabLink, uint64(ino)) }
func ExtentKey(c ContentID, off int64) []byte { return key2(TabExtent, uint64(c), uint64(off)) }
func ExtentPrefix(c ContentID) []byte         { return key1(TabExtent, uint64(c)) }
func ContentKey(c ContentID) []byte           { return key1(TabContent, uint64(c)) }
func RefKey(source, user ContentID) []byte    { return key2(TabRef, uint64(source), uint64(user)) }
func RefPrefix(source ContentID) []byte       { return key1(TabRef, uint64(source)) }
func QueueKey(ns int64, id uint64) []byte     { return key2(TabQueue, uint64(ns), id) }
func OrphanKey(ino Ino) []byte                { return key1(TabOrphan, uint64(ino)) }
func BucketKey(ino Ino) []byte                { return key1(TabBucket, uint64(ino)) }
func PolicyKey(ino Ino) []byte                { return key1(TabPolicy, uint64(ino)) }
func UserKey(id UserID) []byte                { return append([]byte{TabUser}, id...) }
func UserNameKey(name string) []byte          { return append([]byte{TabUserName}, name...) }
func UIDKey(uid uint32) []byte                { return binary.BigEndian.AppendUint32([]byte{TabUID}, uid) }
func AccessIDKey(id string) []byte            { return append([]byte{TabAccess}, id...) }
func PermissionsKey(id string) []byte         { return append([]byte{TabPerms}, id...) }
func ManagedPolicyKey(id string) []byte       { return append([]byte{TabManaged}, id...) }
func GroupKey(id string) []byte               { return append([]byte{TabGroup}, id...) }
func RoleKey(id string) []byte                { return append([]byte{TabRole}, id...) }
func ProviderKey(url string) []byte           { return append([]byte{TabProvider}, url...) }
func RevisionKey() []byte                     { return []byte{TabRevision} }
func OnceKey(slot uint16) []byte              { return []byte{TabOnce, byte(slot >> 8), byte(slot)} }
func SettingKey(name string) []byte           { return append([]byte{TabSetting}, name...) }
func StoreSecretKey(name string) []byte       { return append([]byte{TabSecret}, name...) }

// LongNameKey takes 20 bytes of a hash.
func LongNameKey(p Ino, hash []byte) []byte { return keyStr(TabLongName, uint64(p), string(hash)) }

func LinkKey(ino, parent Ino, name string) []byte {
	k := append(make([]byte, 0, 17+len(name)), LinkPrefix(ino)...)
	k = binary.BigEndian.AppendUint64(k, uint64(parent))
	return append(k, name...)
}

func PartKey(upload ContentID, number int) []byte {
	return binary.BigEndian.AppendUint32(key1(TabPart, uint64(upload)), uint32(number))
}

func PartPrefix(upload ContentID) []byte  { return key1(TabPart, uint64(upload)) }
func UploadIDKey(upload ContentID) []byte { return key1(TabUploadID, uint64(upload)) }
func UploadPrefix(bucket Ino) []byte      { return key1(TabUpload, uint64(bucket)) }

// CompletedKey has the last two bytes of the number: those of uploads that begin one after
// another differ.
func CompletedKey(upload ContentID) []byte {
	return []byte{TabAnswer, byte(upload >> 8), byte(upload)}
}

// UploadKey orders the uploads of a bucket by key, then by upload: a zero
// byte in the key becomes 0x00 0xFF and the key ends with 0x00 0x01.
func UploadKey(bucket Ino, key string, upload ContentID) []byte {
	k := AppendEscaped(UploadPrefix(bucket), key)
	return binary.BigEndian.AppendUint64(append(k, 0, 1), uint64(upload))
}

func AppendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return b
}

// ParseUploadKey is the inverse of UploadKey.
func ParseUploadKey(k []byte) (bucket Ino, key string, upload ContentID, err error) {
	bad := fmt.Errorf("%w: upload key %x", fserr.ErrCorrupt, k)
	if len(k) < 9+2+8 || k[0] != TabUpload {
		return 0, "", 0, bad
	}
	bucket = Ino(binary.BigEndian.Uint64(k[1:]))
	upload = ContentID(binary.BigEndian.Uint64(k[len(k)-8:]))
	if key, ok := unescaped(k[9 : len(k)-8]); ok {
		return bucket, key, upload, nil
	}
	return 0, "", 0, bad
}

// unescaped is the inverse of AppendEscaped, for all of b with 0 1 behind it.
func unescaped(b []byte) (s string, ok bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != 0 {
			out = append(out, b[i])
			continue
		}
		if i+1 >= len(b) {
			return "", false
		}
		i++
		switch b[i] {
		case 0xff:
			out = append(out, 0)
		case 1:
			return string(out), i == len(b)-1
		default:
			return "", false
		}
	}
	return "", false
}

// ParseLinkKey is the inverse of LinkKey, without the inode.
func ParseLinkKey(k []byte) (parent Ino, name string, err error) {
	if len(k) < 17 || k[0] != TabLink {
		return 0, "", fmt.Errorf("%w: link key %x", fserr.ErrCorrupt, k)
	}
	return Ino(binary.BigEndian.Uint64(k[9:])), string(k[17:]), nil
}

// Table returns the bounds of a table.
func Table(tab byte) (from, to []byte) { return []byte{tab}, []byte{tab + 1} }

// InoOfKey returns the number behind the table of a key, 0 if there is none.
func InoOfKey(k []byte) Ino {
	if len(k) < 9 {
		return 0
	}
	return Ino(binary.BigEndian.Uint64(k[1:]))
}

// ParseRefKey is the inverse of RefKey, for a key of 17 bytes.
func ParseRefKey(k []byte) (source, user ContentID) {
	return ContentID(binary.BigEndian.Uint64(k[1:])), ContentID(binary.BigEndian.Uint64(k[9:]))
}

// ParseUIDKey is the inverse of UIDKey.
func ParseUIDKey(k []byte) uint32 { return binary.BigEndian.Uint32(k[1:]) }

// AppendKey1 appends a key whose bytes stand in text, which has room for it.
func AppendKey1(keys [][]byte, text []byte, table byte, ino Ino) ([][]byte, []byte) {
	begin := len(text)
	text = binary.BigEndian.AppendUint64(append(text, table), uint64(ino))
	return append(keys, text[begin:len(text):len(text)]), text
}

// IAMNameKey leads to the group or policy of a kind that has a name, in whatever
// case.
func IAMNameKey(kind, name string) []byte {
	return append(append([]byte{TabIAMName}, kind...), strings.ToLower(name)...)
}

// BacklinkKey records who is attached to a policy or group. The ID of the first
// has a fixed length.
func BacklinkKey(to, from string) []byte {
	return append(append([]byte{TabBacklink}, to...), from...)
}
