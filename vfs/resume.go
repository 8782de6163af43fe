package vfs

import "context"

// Epoch returns the number of the content that the file has, which grows when
// that is replaced; wrote reports whether it is the one that was written through the
// File, which can write to no other.
func (f *File) Epoch(ctx context.Context) (epoch uint64, wrote bool, err error) {
	if err := f.of.rlock(ctx); err != nil {
		return 0, false, err
	}
	defer f.of.mu.RUnlock()
	if f.wrote {
		return f.epoch, true, nil
	}
	return f.of.snap.inode.Epoch, false, nil
}

// Resume makes f, which was opened for that, go on as a File of a process before
// this one, through which the content with this number was written.
func (f *File) Resume(epoch uint64) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.epoch, f.wrote = epoch, true
}
