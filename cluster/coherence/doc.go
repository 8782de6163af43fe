// Package coherence has the clients of one store tell each other what they are about to
// change, so that each answers from memory what nobody changes, without asking the store.
//
//	writer:  Announce ─► each other client: told, applied ─► commit ─► Done
//	reader:  Now ─► read the store, remember it with that stamp
//	         remembered ─► Holds? ─► answer; else ask the store, or compare
//
// It makes things faster and decides nothing else: a client that is not told everything, for
// whatever reason, asks the store, as it would without this package.
//
// # Before, not after
//
// A change is told before it is committed, and the others take note before that. Were it told
// afterwards, somebody could have read the new value from the store when another client still
// answers the old one. While it is under way its lines are in doubt at all clients, the
// writer's own included. Lines are hashes of keys (LineOf): two keys that share one cost a
// question too many.
//
// # Leases
//
// A client is told by another one as long as its lease lasts, which it asks for again and again:
//
//	subscriber                                  publisher
//	renew N (N: its clock)          ─►          the lease ends leaseTime after this came
//	until N + leaseTime - leaseMargin ◄─ granted N
//
// so the subscriber's end comes first, and no clock is compared with another. Who takes no note of a
// change is waited for until his lease has ended, no longer, and is not told for slowTime.
// From then on it asks the store: its own clock says so, whether it runs, stands still or is
// cut off. What it read before counts no more when it is told again (Trust.floor), and
// what is under way at that moment is told first (welcome).
//
// Trust.until is the moment until which all others tell. It ends knownTime after the last look
// at who the clients are, too.
//
// # Who the others are
//
// The store says it (package session of vfs): who is about to use it registers there, with an
// address and a key (cluster.Peer). It then introduces itself, before its first change: whoever
// accepts its subscription has looked who it is, and trusts nothing again before it is told by the new one,
// too; what it lent before has been given back by then. Who cannot be reached may still answer from memory for knownTime after its last look, which
// is as long as the new one waits for it, unless it knows that its process has ended. Who has left, or was put out, commits nothing any more,
// so that those who see it gone need not be told by it.
//
// Nobody may come who does not know of all this: the rules by which gateways are beside
// one another rise first (Looking, all).
//
// # What others keep
//
// What was read may be lent to somebody who asks nobody as long as he has it, such as a kernel
// (Keep): until the lease ends. What is about to change is recalled first, by whomever it is changed: others take
// note only when it is given back, and a client's own changes are announced only then. So it is when a lease ends before its
// time (the connection is lost, or left), since others then stop to wait.
//
// A loan is noted before it is looked whether it may be given, and a change begins before it looks for
// loans: one of both sees the other. That a loan ends is known by the clock of who has it. One that stands still
// with the machine, while bootclock does not, has it until the others tell again (lapse).
//
// # A commit without an answer
//
// It may happen later. Its lines stay in doubt, everywhere, until its user says that no
// transaction of before can commit any more (Join, doubt), or the client is gone.
//
// # Connections
//
// One TLS connection for each direction of each pair. Both ends prove the keys that the
// store names; certificates say nothing else. What goes over it are hashes of keys.
//
// Locks: Client.mu, then Trust.mu or publisher.mu. No message is sent under any. What is lent is recalled under
// loans.recalling, and under none of the others; loans.mu is a leaf.
package coherence
