package vfs

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/xattr"
)

// GetAttr returns the attributes of ino, unflushed writes of this process
// included. ErrStale if it is gone.
func (fs *FS) GetAttr(ctx context.Context, ino Ino) (a Attr, err error) { return fs.attrFor(ctx, ino) }

// Access checks cred's rights on ino, ACLs included; ErrAccess.
func (fs *FS) Access(ctx context.Context, cred *Cred, ino Ino, mask uint32) error {
	return fs.peek(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		return perm.Check(r, cred, n, mask)
	})
}

// touches reports whether anything but the guard is asked for.
func (s *SetAttr) touches() bool {
	return s.Mode != nil || s.UID != nil || s.GID != nil || s.Size != nil || s.DropSetID != 0 || s.timesSet()
}

func (s *SetAttr) validTimes() bool {
	return (s.Atime == nil || record.ValidTime(*s.Atime)) && (s.Mtime == nil || record.ValidTime(*s.Mtime))
}

func (s *SetAttr) timesSet() bool {
	return s.Atime != nil || s.Mtime != nil || s.AtimeNow || s.MtimeNow
}

// setsID reports whether the mode asks for setuid or setgid.
func (s *SetAttr) setsID() bool { return s.Mode != nil && *s.Mode&(ModeSetUID|ModeSetGID) != 0 }

// validIDs reports whether nobody becomes the owner: chown(2) has NoID for "leave as it
// is", and no kernel can show a file that belongs to it.
func (s *SetAttr) validIDs() bool {
	return (s.UID == nil || *s.UID != NoID) && (s.GID == nil || *s.GID != NoID)
}

// SetAttr changes attributes (chmod, chown, truncate, utimensat) and returns
// the new ones. ErrPerm for what only the owner or the superuser may,
// ErrAccess, ErrIsDir and ErrInvalid for the size of what is no regular
// file and for NoID, ErrConflict if the guard differs.
func (fs *FS) SetAttr(ctx context.Context, cred *Cred, ino Ino, set SetAttr) (a Attr, err error) {
	if set.Size != nil && *set.Size < 0 || !set.validTimes() || !set.validIDs() {
		return Attr{}, ErrInvalid
	}
	times, cut, update := timesChange{of: fs.keepsTimes(ctx, ino, &set)}, false, fs.updateFile
	if set.Size != nil && *set.Size == 0 {
		update = fs.updateEmptied
	} else if set.Size != nil {
		update = fs.updateEnd
	} else if times.of == nil && (set.timesSet() || set.setsID()) {
		// What was written before must not come after, with other times or to
		// take the new setuid away.
		if err := fs.flushInode(ctx, ino); err != nil {
			return Attr{}, err
		}
	}
	err = update(ctx, ino, func(t cluster.Txn, o *op) error {
		n, dirTime, err := getInodeAndTime(t, ino, true)
		if err != nil {
			return err
		}
		if n == nil {
			return ErrStale
		}
		if set.GuardCtimeNS != nil {
			if a, err = fs.attrWith(n, dirTime); err != nil {
				return err
			}
			if a.CtimeNS != *set.GuardCtimeNS {
				return ErrConflict
			}
		}
		cut = set.Size != nil && *set.Size == 0 && n.Size != 0
		if set.touches() {
			if dirTime, err = o.setAttr(t, cred, n, dirTime, &set); err != nil {
				return err
			}
			if set.Mtime != nil || set.MtimeNow {
				times.note(n)
			}
		}
		if set.Atime != nil || set.AtimeNow {
			fs.reads.Forget(uint64(ino)) // within, so that it is not stored after this
		}
		a, err = fs.attrWith(n, dirTime)
		return err
	})
	if err != nil && !errors.Is(err, ErrUnavailable) {
		times.undo()
	}
	if open := fs.opened(ino); err == nil && cut && open != nil {
		open.cut.Store(true)
	}
	return a, err
}

// setAttr checks and applies set to n and stores it. It returns the new
// value of key 't'.
func (o *op) setAttr(t cluster.Txn, cred *Cred, n *record.Inode, dirTime []byte, set *SetAttr) ([]byte, error) {
	if err := checkSetAttr(t, cred, n, set); err != nil {
		return nil, err
	}
	mode := n.Mode
	n.CtimeNS = o.nowNS
	if set.Size != nil {
		id, err := o.newID()
		if err != nil {
			return nil, err
		}
		if err := o.contents.Truncate(t, n, *set.Size, ContentID(id)); err != nil {
			return nil, err
		}
		n.Mtime = TimeNS(o.nowNS)
	}
	applyOwner(n, cred, set)
	applyMode(n, cred, set)
	var err error
	if n.Mode&0o777 != mode&0o777 {
		if err := posixacl.Chmod(t, n); err != nil {
			return nil, err
		}
	}
	if set.Mode != nil {
		n.Choose()
		n.MakeExplicit()
		if err := record.RefreshEntry(t, n); err != nil {
			return nil, err
		}
	}
	if set.Size != nil || set.UID != nil || set.GID != nil {
		if err := xattr.DropCapability(t, n); err != nil {
			return nil, err
		}
	}
	if dirTime, err = o.applyTimes(t, n, dirTime, set); err != nil {
		return nil, err
	}
	n.Set(record.FlagVerf, false)
	o.feed.InodeChanged(n.Ino, set.Size != nil)
	return dirTime, record.PutInode(t, n)
}

// checkSetAttr checks cred's right to make the change set to n.
func checkSetAttr(r cluster.Reader, cred *Cred, n *record.Inode, set *SetAttr) error {
	if err := set.checkFlags(n); err != nil {
		return err
	}
	if set.Size != nil {
		switch {
		case n.IsDir():
			return ErrIsDir
		case !n.IsRegular():
			return ErrInvalid
		}
		if !set.SizeByOwner || !cred.Is(n.UID) {
			if err := perm.Check(r, cred, n, AccessWrite); err != nil {
				return err
			}
		}
	}
	if cred.Rooted() {
		return nil
	}
	owner := cred.Is(n.UID)
	if set.Mode != nil && !owner || set.UID != nil && (*set.UID != n.UID || !owner) {
		return ErrPerm
	}
	if set.GID != nil && (!owner || *set.GID != n.GID && !cred.InGroup(*set.GID)) {
		return ErrPerm
	}
	if owner || !set.timesSet() && set.DropSetID == 0 {
		return nil
	}
	if set.Atime != nil || set.Mtime != nil || set.AtimeNow != set.MtimeNow && !(set.MtimeNow && set.MtimeByWriter) {
		return ErrPerm
	}
	return perm.Check(r, cred, n, AccessWrite)
}

// applyOwner changes owner and group. That clears setuid and setgid bits of
// programs, as does a change of size by anyone but the superuser, beside those that
// set names. What it finds them on is the mode of this transaction: one that was read
// before may have been changed.
func applyOwner(n *record.Inode, cred *Cred, set *SetAttr) {
	chown := set.UID != nil || set.GID != nil
	if set.UID != nil {
		n.UID = *set.UID
	}
	if set.GID != nil {
		n.GID = *set.GID
	}
	n.Mode &^= set.DropSetID & (ModeSetUID | ModeSetGID)
	superuser := cred.Superuser()
	if !set.KeepSetID && !n.IsDir() && (chown || set.Size != nil && !superuser) {
		n.Mode = perm.DropSetID(n.Mode)
		if set.Size != nil && !superuser && losesSetGID(cred, n) {
			n.Mode &^= ModeSetGID
		}
	}
}

// losesSetGID reports whether a change of content by cred takes setgid off n,
// though the group may not execute it: so it is unless a member of the group
// makes the change. A door that checks rights itself sees to this, too.
func losesSetGID(cred *Cred, n *record.Inode) bool {
	return n.IsRegular() && n.Mode&(ModeSetGID|0o010) == ModeSetGID && !cred.Rooted() && !cred.InGroup(n.GID)
}

// applyMode changes permissions. The setgid bit is for members of the group.
func applyMode(n *record.Inode, cred *Cred, set *SetAttr) {
	if set.Mode == nil || n.IsSymlink() {
		return
	}
	mode := *set.Mode & ModePermMask
	if !cred.Rooted() && !cred.InGroup(n.GID) {
		mode &^= ModeSetGID
	}
	n.Mode = n.Mode&ModeTypeMask | mode
}

// applyTimes changes access and modification time; the latter is under key
// 't' for a directory.
func (o *op) applyTimes(t cluster.Txn, n *record.Inode, dirTime []byte, set *SetAttr) ([]byte, error) {
	n.Atime = pickTime(n.Atime, o.nowNS, set.Atime, set.AtimeNow)
	if !n.IsDir() {
		n.Mtime = pickTime(n.Mtime, o.nowNS, set.Mtime, set.MtimeNow)
		return nil, nil
	}
	if set.Mtime == nil && !set.MtimeNow {
		return dirTime, nil
	}
	dirTime = record.EncodeDirTime(pickTime(Time{}, o.nowNS, set.Mtime, set.MtimeNow), o.nowNS)
	return dirTime, t.Set(record.DirTimeKey(n.Ino), dirTime)
}

func pickTime(old Time, nowNS int64, chosen *Time, useNow bool) Time {
	switch {
	case useNow:
		return TimeNS(nowNS)
	case chosen != nil:
		return *chosen
	}
	return old
}

// applyNew applies set to an inode that cred makes. A size is a hole.
func applyNew(n *record.Inode, cred *Cred, set *SetAttr, nowNS int64) error {
	if !set.validTimes() {
		return ErrInvalid
	}
	if set.Size != nil {
		if *set.Size < 0 {
			return ErrInvalid
		}
		n.Size = *set.Size
	}
	if !cred.Rooted() && (set.UID != nil && *set.UID != n.UID ||
		set.GID != nil && *set.GID != n.GID && !cred.InGroup(*set.GID)) {
		return ErrPerm
	}
	if set.UID != nil {
		n.UID = *set.UID
	}
	if set.GID != nil {
		n.GID = *set.GID
	}
	applyMode(n, cred, set)
	n.Atime = pickTime(n.Atime, nowNS, set.Atime, set.AtimeNow)
	n.Mtime = pickTime(n.Mtime, nowNS, set.Mtime, set.MtimeNow)
	return nil
}

// checkFlags is perm.CheckFree or perm.CheckWritable for a change of attributes: who may
// write may set the times to now, and takes setuid and setgid off with that.
func (s *SetAttr) checkFlags(n *record.Inode) error {
	if s.Mode != nil || s.UID != nil || s.GID != nil || s.Size != nil || s.Atime != nil || s.Mtime != nil {
		return perm.FlagsOf(n).CheckFree()
	}
	return perm.FlagsOf(n).CheckWritable()
}

// keepsTimes returns the open file of ino if times can be set while it has unflushed
// writes; nil if there are none, or they have to be stored before: what is kept for the
// next process is written again by it, with other times; other processes go by times; and
// a caller that asks for durability gets all that was before.
func (fs *FS) keepsTimes(ctx context.Context, ino Ino, set *SetAttr) *openFile {
	if set.Size != nil || set.setsID() || set.GuardCtimeNS != nil || !cluster.IsRelaxed(ctx) || !fs.feed.Complete() {
		return nil
	}
	of := fs.opened(ino)
	if of == nil {
		return nil
	}
	of.mu.RLock()
	defer of.mu.RUnlock()
	if len(of.pieces) == 0 || len(of.kept) > 0 {
		return nil
	}
	return of
}

// timesChange is a change of the modification time of a file with unflushed writes; without
// of, of another one.
type timesChange struct {
	of     *openFile
	before timesSet // what was there before
	noted  timesSet // by the last attempt; zero if none came so far
}

// note notes that the transaction that stores n sets the time, within that. Writes that
// come while it runs are before or after it.
func (c *timesChange) note(n *record.Inode) {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.times != c.noted { // by an attempt before
		c.before = c.of.times
	}
	c.noted = timesSet{c.of.turn, n.CtimeNS}
	c.of.times = c.noted
}

// undo follows a transaction that had no effect.
func (c *timesChange) undo() {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.times == c.noted {
		c.of.times = c.before
	}
}
