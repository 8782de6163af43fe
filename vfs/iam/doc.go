// Package iam holds what identities may do: groups of users, policies with and
// without a name of their own, and permission boundaries.
//
//	admin door, IAM door ─→ Directory ─┬─ groups.go managed.go         groups, policies, versions
//	                                   ├─ holder.go inline.go attach.go  what a user or group holds
//	                                   └─ records (internal/record), users (vfs/users)
//	judge of vfs ─→ Directory.SetOf ─→ Set.Decide                      cache.go set.go
//
// # Invariants
//
// Each change asks in its own transaction whether who asks may make it (Ask), and
// replaces the store's revision. A Set that was read at a revision is that of every
// snapshot of the same revision, so that rights cost one read where no policy of an
// identity changed.
//
// Identities and policies are named by IDs that are never given twice; names are
// labels. The record of an identity names its policies and groups; backlinks lead the
// other way, and change in the same transaction.
//
// A policy that cannot be read gives nobody a right: who holds it is refused with
// ErrCorrupt until it is replaced.
//
// Sources: "AWS Identity and Access Management API Reference", "IAM and AWS STS
// quotas" and "Policy evaluation logic" of the IAM user guide.
package iam
