/* Gateways beside one another: what one removes while others read and write.
 *
 * Three questions, each with processes of its own, so that the states stay few:
 *
 *   READS    A reader finds content, pins it and reads its bytes; another gateway deletes
 *            the content; a collector removes the bytes when it may (package session,
 *            publisher and Settle).
 *   INODES   Clients of a gateway open a file and use it; another gateway removes its name,
 *            which may get another one and lose it again; a collector removes the inode when
 *            it may (publisher, FS.mayUse).
 *   NUMBERS  A writer stores bytes under a number of its own and names them later; gateways
 *            come and go; a sweep removes what nothing names below the first number that
 *            one who is there may have taken (Session.Left).
 *   LEFT     A gateway stores bytes and names them, again and again, and says with its beats
 *            below which number it names nothing any more; answers of commits are lost, and
 *            such commits happen later or never; a sweep removes what nothing names below
 *            that number (ids.Use, publisher.First, Lease.renewed).
 *
 * Each step is one transaction, or something that one process does by itself. Any process
 * may stop for any time between two steps, and any gateway may be put out: its commits
 * fail from then on, and what it answers does not count.
 *
 * Each of these is a rule left out, and the checker finds what it is for:
 *   NOFENCE  commits of who was put out succeed
 *   NOWAIT   the collector does not wait for readers
 *   NOEPOCH  the collector waits for readers to speak, whatever epoch they know
 *   NOHELD   a reader names no contents
 *   ONEMARK  pins count by when the epoch was read, not by when old views had ended
 *   NOCLAIM  a gateway names no inodes that it uses
 *   EARLY    it names those that it used before it read the epoch
 *   LATE     who would begin to use an inode without links may
 *   NOMARK   who looked a name up and is counted later does not look again
 *   SHARED   he does not if somebody else is counted
 *   SAME     an inode that has lost its name again is taken for the one that was seen without
 *   GIVEBACK a gateway that leaves gives numbers back that it did not use
 *   NOUSE    what is stored and not yet named does not count
 *   NODOUBT  a commit without an answer counts as one that failed
 *   NORENEW  it does so from the next beat on, and the fence stays as it is
 *   ALLSETTLED  a beat settles also what came into doubt after it was sent
 */

#ifdef READS

#define VIEWS 2

bool fence = true;      /* of the reader's gateway */
bool named = true;      /* the content is in the namespace */
bool bytes = true;      /* what it consists of is stored */
bool broken = false;    /* an answer lacked bytes */
byte epoch = 0;         /* in the store */
byte said = 0;          /* by the reader's gateway, in the store */
bool heldSaid = false;  /* it named the content */

/* In the memory of the reader's gateway. */
byte oldViews = 0, newViews = 0; /* that run: of before the mark, and after */
byte oldPins = 0, newPins = 0;   /* of the content, by the mark of pins */
byte known = 0;                  /* epoch that the last beat read */
bool quiet = false;

/* A view with the reads that follow it. */
proctype View() {
	bool found;
	byte mark;              /* the epoch that was known when it began */

	atomic { newViews++; mark = known }
	found = named;          /* its snapshot */
	if
	:: found -> newPins++
	:: else
	fi;
	atomic {                /* the view ends: it was counted as old if a mark came since */
		if
		:: mark != known -> oldViews--
		:: else -> newViews--
		fi
	}
	if
	:: found ->
		if
		:: fence && !bytes -> broken = true
		:: else
		fi;
		atomic {        /* which pin goes makes no difference to the other ones */
			if
			:: newPins > 0 -> newPins--
			:: else -> oldPins--
			fi
		}
	:: else
	fi
}

/* The beats of the reader's gateway. */
proctype Beats() {
	byte say, read;
	bool held;
	byte i;

	for (i : 1 .. 5) {
		atomic {        /* what this beat says */
			say = said; held = heldSaid;
			if
			:: known > said && (quiet || oldViews == 0) ->
#ifndef ONEMARK
				if
				:: !quiet -> quiet = true; oldPins = oldPins + newPins; newPins = 0
				:: else
				fi;
#endif
				say = known;
#ifdef NOHELD
				held = false
#else
				held = oldPins > 0
#endif
			:: else
			fi
		}
		atomic {        /* its transaction */
			if
			:: !fence -> goto out
			:: else
			fi;
			said = say; heldSaid = held; read = epoch
		}
		atomic {        /* acknowledged */
			if
			:: read > known ->
				known = read; quiet = false;
				oldViews = oldViews + newViews; newViews = 0;
#ifdef ONEMARK
				oldPins = oldPins + newPins; newPins = 0
#endif
			:: else
			fi
		}
	}
out:	skip
}

/* Another gateway deletes the content, and collects. Twice, since what is held stays. */
proctype Collector() {
	byte mine, i;

	named = false;
	for (i : 1 .. 2) {
#ifndef NOEPOCH
		atomic { epoch++; mine = epoch }
#endif
		atomic {        /* in one view: what it said, or that it is gone */
#ifndef NOWAIT
			(said >= mine || !fence);
#endif
			if
			:: fence && heldSaid -> skip
			:: else -> goto remove
			fi
		}
	}
	goto out;
remove:	bytes = false;
out:	skip
}

proctype PutOut() { fence = false }

init {
	atomic {
		byte i;
		for (i : 1 .. VIEWS) { run View() }
		run Beats(); run Collector(); run PutOut()
	}
}

ltl safe { [] !broken }

#endif

#ifdef INODES

#define USERS 2

bool fence = true;      /* of the users' gateway */
bool linked = true;     /* the inode has a name */
bool exists = true;
bool broken = false;    /* a use was cut off */
byte lost = 0;          /* which record without links it has, while it has none */
byte epoch = 0;         /* in the store */
byte said = 0;          /* by the users' gateway, in the store */
bool claimed = false;   /* it named the inode */

/* In the memory of the users' gateway. */
byte users = 0;
bool admitted = false;  /* the open file */
byte known = 0;         /* epoch that the last beat read */
byte asked = 0;         /* how often a beat looked what is in use */

/* A kernel that looks the name up, is counted as a user then, and refers to the inode. */
proctype Keeper() {
	bool found, late;
	byte mark;

	mark = asked;
	atomic { found = exists && linked };
	if
	:: !found -> goto out
	:: else
	fi;
	atomic {
#ifdef NOMARK
		late = false;
#else
#ifdef SHARED
		late = asked != mark && users == 0;
#else
		late = asked != mark;
#endif
#endif
		users++
	}
	if
	:: late -> atomic {     /* it looks again */
		if
		:: !exists || !linked -> found = false
		:: else
		fi }
	:: else
	fi;
	atomic {
		if
		:: found && fence && !exists -> broken = true
		:: else
		fi
	}
	atomic {
		users--;
		if
		:: users == 0 -> admitted = false
		:: else
		fi
	}
out:	skip
}

/* Opens, reads and closes. */
proctype User() {
	bool found;

	users++;
	atomic {                /* its look, in one transaction */
#ifdef LATE
		found = exists
#else
		found = exists && (linked || admitted)
#endif
	}
	if
	:: found ->
		admitted = true;
		if
		:: fence && !exists -> broken = true
		:: else
		fi
	:: else
	fi;
	atomic {                /* the last one takes the open file along */
		users--;
		if
		:: users == 0 -> admitted = false
		:: else
		fi
	}
}

/* The beats of the users' gateway. */
proctype Beats() {
	byte say, read;
	bool claim, early;
	byte i;

	for (i : 1 .. 5) {
		atomic {        /* what this beat says */
			say = said; claim = claimed;
			if
			:: known > said ->
				say = known;
#ifdef NOCLAIM
				claim = false
#else
#ifdef EARLY
				claim = early
#else
				claim = users > 0; asked++
#endif
#endif
			:: else
			fi;
			early = users > 0
		}
		atomic {        /* its transaction */
			if
			:: !fence -> goto out
			:: else
			fi;
			said = say; claimed = claim; read = epoch
		}
		known = read
	}
out:	skip
}

/* Another gateway removes the name, and collects. Twice, since what is claimed stays. */
proctype Collector() {
	byte mine, seen, i;

	linked = false;
	for (i : 1 .. 2) {
		atomic {        /* a page of inodes without links */
			if
			:: linked || !exists -> goto out
			:: else
			fi;
			seen = lost
		}
		atomic { epoch++; mine = epoch }
		atomic {        /* in one view: what it said, or that it is gone */
			(said >= mine || !fence);
			if
			:: fence && claimed -> skip
			:: else -> goto remove
			fi
		}
	}
	goto out;
remove:	atomic {
		if
#ifdef SAME
		:: !linked -> exists = false
#else
		:: !linked && lost == seen -> exists = false
#endif
		:: else
		fi
	}
out:	skip
}

/* A client that has it open gives it a name, which goes again. */
proctype Linker() {
	if
	:: atomic { exists && !linked -> linked = true; lost++ };
	   linked = false
	:: !exists
	fi
}

proctype PutOut() { fence = false }

init {
	atomic {
		byte i;
#ifdef KEEPERS
		run User();
		for (i : 1 .. USERS) { run Keeper() }
#else
		for (i : 1 .. USERS) { run User() }
#endif
		run Beats(); run Collector(); run Linker(); run PutOut()
	}
}

ltl safe { [] !broken }

#endif

#ifdef NUMBERS

/* The writer comes when it likes, takes one number, stores bytes under it, and names them. The
 * leaver was there first, and took numbers that it did not all use. */
bool fence = false;             /* of the writer */
bool leaver = true;             /* is there */
byte counter = 8;               /* the leaver has 4 .. 7, and used 4 */
byte first = 0, leaverFirst = 4;
byte number = 0;
bool stored = false, named = false, acked = false;

proctype Writer() {
	atomic { fence = true; first = counter }
	atomic {                /* a lease of numbers */
		if
		:: !fence -> goto out
		:: else
		fi;
		number = counter; counter = counter + 4
	}
	stored = true;
	atomic {                /* the transaction that names them */
#ifndef NOFENCE
		if
		:: !fence -> goto out
		:: else
		fi;
#endif
		named = true; acked = true
	}
out:	skip
}

proctype Leaver() {
#ifdef GIVEBACK
	atomic {
		if
		:: counter == 8 -> counter = 5
		:: else
		fi
	}
#endif
	leaver = false
}

proctype Sweeper() {            /* its own first number is higher than all */
	byte bound;
	bool gone;

	atomic {                /* one snapshot */
		bound = 255;
		if
		:: leaver -> bound = leaverFirst
		:: else
		fi;
		if
		:: fence && first < bound -> bound = first
		:: else
		fi;
		gone = stored && !named && number < bound
	}
	if
	:: gone -> stored = false
	:: else
	fi
}

proctype PutOut() {
	if
	:: fence -> fence = false
	:: true                 /* or not */
	fi
}

init { atomic { run Writer(); run Leaver(); run Sweeper(); run PutOut() } }

ltl safe { [] !(acked && !stored) }

#endif

#ifdef LEFT

#define USES 2

bool fence = true;      /* of the gateway */
byte value = 0;         /* of the fence */
byte first = 1;         /* that it said, in the store */
bool stored[4], named[4];

/* In the memory of the gateway. */
byte next = 1;
bool using = false;
byte from = 0;
byte doubts = 0, doubt[2];

/* A commit without an answer. */
bool flying = false;
byte flight = 0, expects = 0;

proctype Writer() {
	byte i, n;

	for (i : 1 .. USES) {
		atomic { using = true; from = next }
		atomic { n = next; next++ }
		stored[n] = true;
		if
		:: atomic { fence -> named[n] = true }; atomic { using = false }
		:: atomic { !flying -> flying = true; flight = n; expects = value };
			atomic {
#ifndef NODOUBT
				doubt[doubts] = from; doubts++;
#endif
				using = false
			}
		:: atomic { !fence -> goto out }
		fi
	}
out:	skip
}

/* The commit comes, or is lost. */
proctype Late() {
	byte i;

	for (i : 1 .. USES) {
		atomic {
			flying -> flying = false;
			if
			:: fence && value == expects -> named[flight] = true
			:: true
			fi
		}
	}
}

proctype Beats() {
	byte i, say, k;

	for (i : 1 .. 3) {
		atomic {        /* what this beat says */
			say = next; k = doubts;
#ifndef NOUSE
			if
			:: using && from < say -> say = from
			:: else
			fi;
#endif
			if
			:: doubts > 0 && doubt[0] < say -> say = doubt[0]
			:: else
			fi
		}
		atomic {        /* its transaction */
			if
			:: !fence -> goto out
			:: else
			fi;
			if
			:: say > first -> first = say
			:: else
			fi;
#ifndef NORENEW
			if
			:: k > 0 -> value++
			:: else
			fi
#endif
		}
		atomic {        /* acknowledged */
#ifdef ALLSETTLED
			k = doubts;
#endif
			if
			:: k == 1 -> doubt[0] = doubt[1]
			:: else
			fi;
			doubts = doubts - k
		}
	}
out:	skip
}

proctype Sweeper() {
	byte i, bound;
	bool gone;

	for (i : 1 .. USES) {
		atomic {        /* one snapshot */
			bound = 255;
			if
			:: fence -> bound = first
			:: else
			fi
		}
		gone = stored[i] && !named[i] && i < bound;     /* another one */
		if
		:: gone -> stored[i] = false
		:: else
		fi
	}
}

proctype PutOut() {
	if
	:: fence -> fence = false
	:: true                 /* or not */
	fi
}

init { atomic { run Writer(); run Late(); run Beats(); run Sweeper(); run PutOut() } }

ltl safe { [] !(named[1] && !stored[1] || named[2] && !stored[2]) }

#endif
