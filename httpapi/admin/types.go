package admin

import (
	"time"

	"ogw/vfs"
)

// Status of a process.
type Status struct {
	Version string    `json:"version"`
	Running bool      `json:"running"` // false: answered by the command itself
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Dir     string    `json:"dir"`
	Engine  string    `json:"engine"`
	FSID    string    `json:"fsid"` // 16 hexadecimal digits
	// Store is "" where nothing is known, else whether it takes writes:
	// "writable", "read-only" (until the medium takes writes again) or "failed"
	// (until it is opened again), and StoreError why not.
	// "unavailable": the servers of a shared store do not answer.
	Store      string `json:"store,omitempty"`
	StoreError string `json:"store_error,omitempty"`
	TotalBytes int64  `json:"total_bytes"`
	FreeBytes  int64  `json:"free_bytes"`
	Files      uint64 `json:"files"` // inodes, at most
	// DamagedSecrets are records with secrets that could not be read, and sealed,
	// when the store was opened.
	DamagedSecrets int `json:"damaged_secrets,omitempty"`
	// Scrub verifies what is stored, in the background.
	Scrub    vfs.ScrubState `json:"scrub"`
	Gateways []Gateway      `json:"gateways"`
	Mounts   []Mount        `json:"mounts"`
	// Users are the processes that use a shared store.
	Users []vfs.Peer `json:"users,omitempty"`
}

// Gateway is one listener.
type Gateway struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Listen   string `json:"listen"` // the address in use
	TLS      bool   `json:"tls"`
	State    string `json:"state"` // "serving", "draining", "stopped"
	// Portmapper reports whether NFS clients learn its ports from port 111 of its
	// machine: they mount without port options, and have locks.
	Portmapper bool `json:"portmapper,omitempty"`
	// Clients are the connections of an NFS gateway.
	Clients []NFSClient `json:"clients,omitempty"`
}

// NFSClient is one connection of an NFS client.
type NFSClient struct {
	Address  string    `json:"address"`
	Machine  string    `json:"machine,omitempty"` // as it calls itself
	Since    time.Time `json:"since"`
	Mounts   []string  `json:"mounts"` // paths that its address has mounted
	Calls    uint64    `json:"calls"`
	InFlight int       `json:"in_flight"`
	BytesIn  uint64    `json:"bytes_in"`
	BytesOut uint64    `json:"bytes_out"`
}

// Mount is one FUSE mount of the process.
type Mount struct {
	Dir      string `json:"dir"`               // absolute
	Source   string `json:"source,omitempty"`  // name in the mount table; "" is ogw
	Subtree  string `json:"subtree,omitempty"` // path in the namespace shown there; "" is all
	ReadOnly bool   `json:"read_only,omitempty"`
	// AllowOther lets users other than the one who mounted use it.
	AllowOther bool `json:"allow_other,omitempty"`
	// NonEmpty mounts over a directory that has entries.
	NonEmpty bool `json:"non_empty,omitempty"`
	// Writeback lets the kernel gather small writes; for files that nobody
	// else changes concurrently.
	Writeback bool `json:"writeback,omitempty"`
	// FlushBehind has close(2) not wait for the store; fsync does.
	FlushBehind bool `json:"flush_behind,omitempty"`
	// NoHandles has the kernel offer no file handles, for the layers of an overlay.
	NoHandles bool `json:"no_handles,omitempty"`
	// IOUring reports whether requests come through io_uring: "on", "off", or ""
	// for where the kernel offers it. A mount that is listed has what it got.
	IOUring string `json:"io_uring,omitempty"`
	// Survive keeps the mount while no server runs, for the next one; programs
	// wait meanwhile. Requests come through /dev/fuse.
	Survive bool `json:"survive,omitempty"`
	// Abandon bounds in seconds how long it is kept without a server; nil is
	// for ever.
	Abandon *float64 `json:"abandon,omitempty"`
	// Flags of the kernel: suid, nosuid, dev, nodev, exec, noexec, noatime, nodiratime,
	// nosymfollow, sync.
	Flags []string `json:"flags,omitempty"`
	// EntryTimeout and AttrTimeout bound in seconds how long the kernel keeps
	// names and attributes; nil is the default.
	EntryTimeout *float64 `json:"entry_timeout,omitempty"`
	AttrTimeout  *float64 `json:"attr_timeout,omitempty"`
	// Returns reports whether the next server makes the mount again if this process
	// ends. The process says so; a request cannot.
	Returns bool `json:"returns,omitempty"`
	// Missing is why the process does not serve a mount that it should have;
	// "" if it does.
	Missing string `json:"missing,omitempty"`
}

// Unmounted is a mount that the process has ended.
type Unmounted struct {
	Dir string `json:"dir"`
	// Ends reports whether the process PID ends now: it served nothing else.
	Ends bool `json:"ends,omitempty"`
	PID  int  `json:"pid"`
}

// Whereis describes who holds an object.
type Whereis struct {
	Path   string `json:"path"` // as stored: bucket/key
	Exists bool   `json:"exists"`
	// Directory reports whether the path is one; Size is then of the body that S3
	// may give it.
	Directory bool      `json:"directory,omitempty"`
	Size      int64     `json:"size"`
	ETag      string    `json:"etag,omitempty"`
	Modified  time.Time `json:"modified,omitzero"`
	Inode     uint64    `json:"inode,omitempty"`
	Extents   []Extent  `json:"extents"`
}

// Extent is a range of an object.
type Extent struct {
	Offset int64      `json:"offset"`
	Length int64      `json:"length"`
	Kind   string     `json:"kind"` // "inline", "blob", "hole", "unflushed"
	Blob   string     `json:"blob,omitempty"`
	Copies []Location `json:"copies"`
}

// Location is one copy of a blob.
type Location struct {
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
	Path    string `json:"path,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Primary bool   `json:"primary"`
}

// PathRequest names a path.
type PathRequest struct {
	Path string `json:"path"`
}

// Purged answers a purge.
type Purged struct {
	Path   string `json:"path"`
	Inodes int    `json:"inodes"` // touched by who was asked
	// Others are the gateways that use the store beside it.
	Others []PurgedGateway `json:"others,omitempty"`
}

// PurgedGateway is what became of a purge at another gateway.
type PurgedGateway struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Answered reports whether it said in time what it did.
	Answered bool   `json:"answered"`
	Gone     bool   `json:"gone,omitempty"` // and with it all that it remembered
	Inodes   int    `json:"inodes"`
	Error    string `json:"error,omitempty"` // why it could not
}

// CheckRequest asks for a check.
type CheckRequest struct {
	Repair bool `json:"repair"`
	Data   bool `json:"data"` // read and verify all bytes too
}

// CheckReport is what a check found.
type CheckReport struct {
	Clean       bool      `json:"clean"` // no problem is left
	Inodes      int64     `json:"inodes"`
	Directories int64     `json:"directories"`
	Files       int64     `json:"files"`
	Contents    int64     `json:"contents"`
	Extents     int64     `json:"extents"`
	Blobs       int64     `json:"blobs"`
	Bytes       int64     `json:"bytes"`
	Problems    []Problem `json:"problems"`
	Dropped     int64     `json:"dropped"`  // problems counted but not listed
	Repaired    int64     `json:"repaired"` // listed or not
	// Mendable are those that a repair would mend, and that were not mended.
	Mendable int64 `json:"mendable"`
	// Damaged blobs that no file uses any more, kept until they are released.
	AsideBlobs int64 `json:"aside_blobs"`
	AsideBytes int64 `json:"aside_bytes"`
}

// Left returns how many problems were not mended.
func (r *CheckReport) Left() int64 { return int64(len(r.Problems)) + r.Dropped - r.Repaired }

// Problem is one finding.
type Problem struct {
	Kind     string `json:"kind"`
	Detail   string `json:"detail"`
	Repaired bool   `json:"repaired"`
}

// User is a user; Keys hold secrets only where they were just made.
type User struct {
	ID    string `json:"id"` // never given twice; the name may change
	Name  string `json:"name"`
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
	Admin bool   `json:"admin"`
	Keys  []Key  `json:"keys"`
}

// Key is an access key.
type Key struct {
	ID      string    `json:"id"`
	Secret  string    `json:"secret,omitempty"`
	Created time.Time `json:"created"`
}

// AddUser asks for a new user. Without UID one from FirstUID is taken that no
// user has or had; without GID it is the UID; without a key one is made.
type AddUser struct {
	Name      string  `json:"name"`
	UID       *uint32 `json:"uid,omitempty"`
	GID       *uint32 `json:"gid,omitempty"`
	Admin     bool    `json:"admin,omitempty"`
	Inherit   bool    `json:"inherit,omitempty"` // UID may be that of a removed user
	AccessKey string  `json:"access_key,omitempty"`
	SecretKey string  `json:"secret_key,omitempty"`
	// MayRead are buckets, or buckets with what keys begin with ("photos/2026/"), that
	// the user may list and read: nothing else then, at S3 and REST.
	MayRead []string `json:"may_read,omitempty"`
}

// Rotate asks for a new key.
type Rotate struct {
	Keep bool `json:"keep"` // the old keys stay valid
}

// RenameUser asks for another name of a user.
type RenameUser struct {
	Name string `json:"name"`
}

// AddKey asks for a further key of a user; without one given it is made.
type AddKey struct {
	AccessKey string `json:"access_key,omitempty"`
	SecretKey string `json:"secret_key,omitempty"`
}

// Bucket is a bucket.
type Bucket struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	UID     uint32    `json:"uid"`
	GID     uint32    `json:"gid"`
	Owner   string    `json:"owner,omitempty"` // name of the user with that uid
	// Durability of what is done to its objects, "sync" or "async", and
	// whether it is that of the whole; "" where it was not asked for.
	Durability string `json:"durability,omitempty"`
	Inherited  bool   `json:"durability_inherited,omitempty"`
}

// SetBucket changes settings of a bucket; nil leaves one as it is.
type SetBucket struct {
	Durability *string `json:"durability,omitempty"` // "sync", "async"; "" for that of the whole
}

// AddBucket asks for a new bucket.
type AddBucket struct {
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"` // user by name or ID; "" is the one that came with the store
}

// Usage of a bucket.
type Usage struct {
	Name    string `json:"name"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Export is a directory that NFS clients may mount.
type Export struct {
	// ID names an export that was added at run time; configured ones have none.
	ID       string    `json:"id,omitempty"`
	Gateway  string    `json:"gateway,omitempty"` // of a configured one
	Path     string    `json:"path"`
	Clients  []string  `json:"clients"` // networks; none: every client
	ReadOnly bool      `json:"read_only"`
	Insecure bool      `json:"insecure"` // takes calls from ports of 1024 and above
	Squash   string    `json:"squash"`   // root, all or none
	AnonUID  *uint32   `json:"anon_uid,omitempty"`
	AnonGID  *uint32   `json:"anon_gid,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	// NeedsSecret reports whether the mount path must end in @ and a secret.
	NeedsSecret bool `json:"needs_secret"`
	// Secret is there in the answer to its making only.
	Secret string `json:"secret,omitempty"`
	// Pending is there in that answer only: why the servers of the process do not have it
	// yet, though it is stored.
	Pending string `json:"pending,omitempty"`
}

// AddExport asks for a new export.
type AddExport struct {
	Path     string    `json:"path"`
	Clients  []string  `json:"clients,omitempty"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Insecure bool      `json:"insecure,omitempty"`
	Squash   string    `json:"squash,omitempty"` // default: root
	AnonUID  *uint32   `json:"anon_uid,omitempty"`
	AnonGID  *uint32   `json:"anon_gid,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Secret   bool      `json:"secret,omitempty"` // make one
}

// Lock is an advisory lock that is held, or a request that waits for one.
type Lock struct {
	Door   string `json:"door"`             // "nfs", "fuse" or "go"
	Client string `json:"client,omitempty"` // address of an NFS client, directory of a FUSE mount
	Host   string `json:"host,omitempty"`   // as an NFS client calls itself
	Server string `json:"server,omitempty"` // the address by which an NFS client uses this server
	PID    uint32 `json:"pid,omitempty"`    // of the process, on the client's machine
	// Owner distinguishes the owners of one client: text, or hexadecimal digits
	// behind "0x".
	Owner string `json:"owner"`
	Path  string `json:"path,omitempty"` // bucket/key; none: the file has been unlinked
	Inode uint64 `json:"inode"`
	// Kind is "range" (fcntl), "flock", or "share" (what DOS clients reserve
	// when they open a file).
	Kind string `json:"kind"`
	// Type is "shared" or "exclusive"; of a share what its holder does with
	// the file: "read", "write" or "read-write".
	Type string `json:"type"`
	// Deny is what a share keeps others from: "none", "read", "write" or "read-write".
	Deny    string `json:"deny,omitempty"`
	Offset  uint64 `json:"offset"`
	Length  uint64 `json:"length"` // 0: to the end of the file, wherever that is
	Waiting bool   `json:"waiting"`
	// Gateway is another one, through which the file is locked: its host and process. Where
	// several use the store, what an NFS client holds is of none.
	Gateway string `json:"gateway,omitempty"`
}

// LockFilter chooses locks; an empty field chooses all.
type LockFilter struct {
	Path   string // of a file, or of a directory for all below
	Client string // as in Lock.Client or Lock.Host
}

// LockList answers ListLocks.
type LockList struct {
	Locks []Lock `json:"locks"`
	More  bool   `json:"more"`  // there are more than are listed
	Grace bool   `json:"grace"` // after a restart, clients are taking back theirs
}

// FreeLocks asks to end all locks of an NFS client.
type FreeLocks struct {
	Client string `json:"client"` // address or host name
	// Force frees those of a client that is connected: its programs go on,
	// believing that they hold them.
	Force bool `json:"force,omitempty"`
}

// FreedClient is a client whose locks were ended.
type FreedClient struct {
	Gateway string `json:"gateway"`
	Client  string `json:"client"`
	Host    string `json:"host"`
	Server  string `json:"server,omitempty"` // the address by which it uses this server
	Locks   int    `json:"locks"`            // held, and requests that waited
	Shares  int    `json:"shares"`
}

// FreedLocks answers FreeLocks.
type FreedLocks struct {
	Clients []FreedClient `json:"clients"`
}

// Quarantine lists the damaged blobs.
type Quarantine struct {
	Blobs []vfs.DamagedBlob `json:"blobs"` // the oldest finding first
}

// ReleaseDamaged asks to delete damaged blobs that no file uses any more.
type ReleaseDamaged struct {
	Blobs []string `json:"blobs"` // 32 hexadecimal digits each; none with All
	All   bool     `json:"all"`
}

// ReleasedDamaged answers ReleaseDamaged.
type ReleasedDamaged struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}
