// Package content keeps the bytes of files: contents, their extents, and the blobs
// that these name.
//
//	Writer ─► Written ─► Change.Set ──────────────┐ a content becomes an inode's
//	Item ─► Change.StoreItem (cut, merge) ────────┤ one changes in place
//	Change.Refer, Clone, CopyRange (share) ───────┤ one names the bytes of another
//	                                              ▼
//	              inode → content → extents → blobs
//	                                              │
//	Reader ◄─ Open, within a view ◄───────────────┤
//	Collect ◄─ the queue ◄─ Change.Drop, cut ─────┘
//
// A Store needs a namespace only to run transactions (Namespace), and a Change is
// one transaction's part in contents. What calls from outside of a transaction
// and takes several (Fit, Stage, Compact, Collect) leaves a consistent file, and
// nothing that the collector does not find, after each of them.
//
// A content may change in place while one inode alone holds it. When another
// content comes to name its extents, it is marked shared (record.FlagShared in the
// inode, record 's', key 'r') and never changes again: a later write first gives
// the inode a fresh content that refers to the shared one as a whole, which is
// O(1). A ref extent never names a range that is itself a ref: references are
// resolved when they are made. Where that would be too many, the content is
// detached in transactions of its own (ErrDetach, Fit).
//
// What a content no longer names, a blob or the source of a ref extent, may still be
// named by another of its extents. A transaction looks at few of them, since an
// engine with limits counts what its scans meet, and leaves the rest to the collector.
//
// Who reads pins a content in the view in which it learned of it (Open). The
// collector waits for the views that began before, in all processes
// (session.Session.Settle), and spares what is pinned then. Who changes one in place notifies its readers (Change.touch).
//
// Files use those of the lines below theirs, and store and change each other:
//
//	collectupload  compact  detach
//	collect  copyrange  item  truncate
//	collectstaged  replace  sum  writer
//	refs  usage
//	content  reader  relief
//	store  change
//	hold  page
//
// Locks: Store.collecting (one pass at a time) and the locks of flushes are held
// over transactions; Reader.mu → extents.Pins.mu; blobHolds.mu is a leaf.
package content
