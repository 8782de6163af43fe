// Package fileio is how the embedded engine uses the file system: files that
// nobody else may use, pages for O_DIRECT, and how many files stay open.
//
//	data      Disk ── OS: private files, whole pages past the page cache
//	              ├── Handles: shared for reading, closed when files run short
//	              └── Windows: pages of these into pipes, and what of it is verified:
//	                    Presence, which pages are still those that were
//	metadata  PrivateFS, below Pebble and what stands between
//
// Locks: Pool.mu and that of Windows are leaves, and that of Handles is but for
// Handles.Close, which takes Windows.mu. No file is opened, read, mapped or closed
// under any, but for that.
package fileio
