// Package feed reports changes: the doors that cache something (Invalidator), the
// open files of this process, and those who only ask whether something changed
// (Changes, MoveStamp).
//
//	transaction ─► Batch ─┬ begin: counts run, before the commit
//	                      └ over:  open files ─► watchers ─► counts stand
//	                               all before the change is acknowledged
//
// A Feed is the form for one process: it reports what this process changes. If
// others change the store as well (Complete is false), what was read before is
// believed for StaleBound. Several processes that notified one another would make
// their Feed complete; nobody who asks would change.
//
// What a kernel keeps of attributes in such a process is recalled before others change it (RecallAttrs).
//
// Invalidators are called with no lock held. Feed.mu is a leaf.
package feed
