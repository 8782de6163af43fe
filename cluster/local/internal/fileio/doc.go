// Package fileio is how the embedded engine uses the file system: files that
// nobody else may use, pages for O_DIRECT, and how many files stay open.
//
//	data      Disk ── OS: private files, whole pages past the page cache
//	              └── Handles: shared for reading, closed when files run short
//	metadata  PrivateFS, below Pebble and what stands between
//
// Locks: Pool.mu and that of Handles are leaves. No file is opened, read or
// closed under either, but for Handles.Close.
package fileio
