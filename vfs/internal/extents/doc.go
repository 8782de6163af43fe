// Package extents loads the extents of contents, and keeps contents that are in
// use from being deleted (Pins).
//
// A reader pins a content in the view in which it learned of it. Who deletes first
// makes the content unreachable, then waits for the views that began earlier
// (session.Readers), and spares what is pinned after that. Who changes a content in place
// says so (Begin, End): readers that overlap read again.
//
// Pins.mu and Set.mu are leaves.
package extents
