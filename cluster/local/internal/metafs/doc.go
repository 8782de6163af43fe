// Package metafs is what stands between Pebble and the file system, and knows
// whether the metadata can still be written.
//
//	Pebble
//	  │ walErrorFS     errors of the log go to Health, not to Pebble, which would end
//	  │ guardFS        no file is removed once the store failed
//	  │ spaceWaitFS    writes wait while the disk is full (SpaceWait)
//	  │ aheadFS        logs are filled with zeros before they are written
//	  │ RollbackGuard  metadata that are older than they were are refused (MARK)
//	  │ LogFS          old logs can be overwritten
//	  └ the file system, fileio.PrivateFS
//
// Errors and panics of Pebble itself reach Health by Catch, its logger and its
// listener.
//
// Locks: SpaceWait.mu is held while space is given up, which takes the locks of
// who gives it; RollbackGuard.mu and LogFS.mu are leaves.
package metafs
