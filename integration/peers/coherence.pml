/* Gateways beside one another: what one answers from memory while others change it (package
 * cluster/coherence).
 *
 * There is one pair. Gateway R remembers what it has read or written, and answers that. Gateway
 * W changes it, and tells R. What W remembers is the same, seen from the other side. Three
 * questions, so that the states stay few:
 *
 *   TOLD     W has two changes at a time; it may be put out
 *   OWN      R changes the pair, too, while W does
 *   JOIN     W comes: it registers, introduces itself, and changes the pair; looks take time
 *
 *   Change   of W: Announce, commit, Done or Failed (change.go, publisher.go)
 *   Own      the same of R, without those that it tells
 *   Reader   asks the store and remembers, or answers from memory (Trust.Holds)
 *   Source   the subscription of R to W, from one connection to the next (source.go)
 *   Look     R looks who is there (Client.saw); two may run, since a stranger causes one, too
 *   Joiner   W registers and introduces itself (Client.Introduce)
 *   World    notes and grants go on, connections break, leases end, W is put out
 *
 * Versions are not counted: of each value that R has, one bit says whether it is what the store
 * has. Of each stamp, one says whether the line has moved since, and one whether the floor has.
 *
 * There is no clock. A lease of R, or a look, counts until World ends it, and W gives R up only
 * after all that it granted has ended. Whatever begins later may end before, which only has R
 * trust less.
 *
 * What is committed may be read from the store at once, by anybody. So R must not answer from
 * memory what was already old when the question came.
 *
 * Any process may stop between two steps. Each of these is a rule left out, and the checker
 * finds what it is for:
 *   NOWAIT     a change does not wait for notes
 *   AFTER      it is told after it was committed
 *   NOFLOOR    what was read before R was told again counts
 *   NOWELCOME  who subscribes is not told what is under way
 *   PUBFIRST   W gives R up before the lease has ended by R's clock
 *   NOLOST     R trusts on when the connection is lost
 *   NODOUBT    a commit without an answer counts as one that failed
 *   LATESTAMP  what was read has the stamp of after the read
 *   NOMOVE     the end of a change does not move the line
 *   NOFENCE    commits of who was put out succeed
 *   ANYDONE    what R wrote counts from its Done on, also if it was not told meanwhile
 *   EARLY      who comes changes before it is introduced
 *   NOLOOK     R accepts the subscription of whom it does not know
 *   OLDLOOK    of two looks at a time, that counts which began last
 */

#ifdef TOLD
#define CHANGES 2
#else
#define CHANGES 1
#endif

/* Who is there. */
#ifdef JOIN
bool fence = false;     /* of W, in the store */
bool follows = false;   /* R knows of W, and subscribes */
bool introduced = false;
#else
bool fence = true, follows = true, introduced = true;
#endif
bool gone = false;      /* W was put out */
bool broken = false;    /* R answered what was old */

/* What R has read or written, as bits of sets. */
#define MEM 1           /* what it remembers */
#define ASK 2           /* what Reader asks for */
#define HOLD 4          /* the stamp by which Reader answers from memory */
#define MADE 8          /* what R writes; before that, the begin of the change */
byte fresh = 0;         /* those that are what the store has */
byte still = 0;         /* those with a stamp since which the line has not moved */
byte above = 0;         /* those with a stamp since which the floor has not moved */
bool some = false;      /* R remembers something */

#define stampNow(x)     still = still | x; above = above | x
#define forget(x)       still = still & (15 - x); above = above & (15 - x); fresh = fresh & (15 - x)
#define copied(set, to, from) (set & (15 - to) | (set & from) / from * to)
#define move            still = 0
#define commit          fresh = 0

/* Memory.put: the newer version stays. */
#define remember(x) \
	if \
	:: (fresh & MEM) == 0 || (fresh & x) != 0 && (still & above & MEM) == 0 -> some = true; \
		fresh = copied(fresh, MEM, x); still = copied(still, MEM, x); above = copied(above, MEM, x) \
	:: (fresh & x) == 0 || (still & above & x) == 0 || (still & above & MEM) != 0 \
	fi

/* Changes that are under way, bits 1 and 2. */
byte open = 0;          /* at W */
byte marked = 0;        /* at R */
bool own = false;       /* of R, at R */

/* The connection on which R is told. */
mtype = { down, up, cut };      /* cut: R does not know yet */
mtype conn = down;
bool subscribed = false;        /* W tells R */
bool hello = false;             /* R is not told yet what was under way then */
byte welcome = 0;               /* that */
byte begun = 0, ended = 0;      /* R is not told yet */
byte noted = 0;                 /* W does not know yet that R took note */
byte waiting = 0;               /* W waits for R */

/* The lease of R, and the one that W granted and R does not know yet. */
bool lease = false;
bool granted = false, next = false;     /* next: it has not ended */

/* The looks of R. early: it began before W registered. */
bool known = true, knownEarly = true;
bool looking[2], counts[2], early[2];
bool second[2];         /* it began after the other one, which runs */
bool over[2];           /* the other one has ended meanwhile */

#define trusted (known && (!follows || lease))

/* Trust.extend, after known, follows or lease are others. */
#ifdef NOFLOOR
#define extend(before)  skip
#else
#define extend(before) \
	if \
	:: !(before) -> above = 0 \
	:: else \
	fi
#endif

/* Trust.end of changes of W. */
#ifdef NOMOVE
#define end(set)        marked = marked & (3 - (set))
#else
#define end(set) \
	if \
	:: (marked & (set)) != 0 -> move; marked = marked & (3 - (set)) \
	:: else \
	fi
#endif

#ifdef NOFENCE
#define commits         (fence || gone)
#else
#define commits         fence
#endif

#define lose \
	conn = cut; granted = false; next = false; hello = false; welcome = 0; begun = 0; ended = 0; noted = 0

inline announce(t) {
	open = open | t;
	if
	:: subscribed -> waiting = waiting | t;
		if
		:: conn == up -> begun = begun | t
		:: else
		fi
	:: else
	fi
}

inline finish(t) {
	open = open & (3 - t); waiting = waiting & (3 - t);
	if
	:: subscribed && conn == up -> ended = ended | t
	:: else
	fi
}

proctype Change(byte t) {
	introduced;
end:	do
	/* The number stands for a new change once nothing of the last one is on its way. */
	:: ((begun | ended | noted | welcome) & t) == 0 ->
#ifdef AFTER
		if
		:: atomic { commits -> commit }
		:: true
		fi;
		atomic { announce(t) };
		atomic { (waiting & t) == 0 -> finish(t) }
#else
		atomic { announce(t) };
		if
#ifndef NOWAIT
		:: (waiting & t) == 0 ->
#else
		:: true ->
#endif
			if
			:: atomic { commits -> commit }
			:: !commits
#ifndef JOIN
			:: skip;        /* no answer: it happens later or never, until it cannot any more */
#ifdef NODOUBT
				atomic { finish(t) }
#endif
				if
				:: atomic { commits -> commit }
				:: true
				fi
#endif
			fi
#ifndef JOIN
		:: true         /* the caller gave up */
#endif
		fi;
		atomic { finish(t) }
#endif
	od
}

proctype Own() {
	bool ok;

end:	do
	:: atomic { !own -> own = true; move; stampNow(MADE) };
		atomic { commit; fresh = MADE };
		atomic {        /* Trust.end */
#ifdef ANYDONE
			ok = (still & MADE) != 0 && marked == 0;
#else
			ok = (still & above & MADE) != 0 && marked == 0;
#endif
			move; own = false;
			if
			:: ok -> stampNow(MADE)
			:: else
			fi;
			ok = false
		}
		atomic { remember(MADE); forget(MADE) }
	od
}

proctype Reader() {
end:	do
	:: atomic { stampNow(ASK) };
		fresh = fresh | ASK;
		atomic {
#ifdef LATESTAMP
			stampNow(ASK);
#endif
			remember(ASK); forget(ASK)
		}
	/* What is remembered is old, and that is asked for. */
	:: atomic { some && (fresh & MEM) == 0 && trusted ->
		still = copied(still, HOLD, MEM); above = copied(above, HOLD, MEM) };
		if
		:: (above & HOLD) != 0 ->
			if
			:: marked == 0 && !own ->
				if
				:: (still & HOLD) != 0 -> broken = true
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		atomic { forget(HOLD) }
	od
}

proctype Source() {
	bool before;

end:	do
	:: atomic { conn == down && follows -> conn = up; subscribed = true; waiting = 0;
#ifndef NOWELCOME
		welcome = open;
#endif
		hello = true }
	:: atomic { conn == up && hello ->
		if
		:: welcome != 0 -> marked = welcome; move
		:: else
		fi;
		hello = false; welcome = 0 }
	:: atomic { conn == up && !hello && begun + ended != 0 ->
		if
		:: begun != 0 -> marked = marked | begun; move; noted = noted | begun
		:: else
		fi;
		end(ended); begun = 0; ended = 0 }
	:: atomic { conn == up && !hello && granted -> before = trusted;
		lease = next; granted = false; next = false;
		extend(before); before = false }
	:: conn == cut || conn == up && !follows ->
		atomic {
			lose;
#ifndef NOLOST
			lease = false
#endif
		}
		atomic { end(3); conn = down }
	od
}

/* What a look changes. */
inline saw(there) {
	before = trusted;
	if
	:: there && !follows -> follows = true; lease = false
	:: !there && follows -> follows = false
	:: else
	fi;
	extend(before); before = false
}

#ifdef JOIN
proctype Look(byte i) {
	bool there, before;

end:	do
	:: atomic { !looking[i] -> looking[i] = true; counts[i] = true; early[i] = !fence && !gone;
		second[i] = looking[1 - i]; second[1 - i] = false };
		there = fence;
		atomic {
			if
			:: !over[i] ->
				saw(there);
				known = counts[i]; knownEarly = early[i];
#ifdef OLDLOOK
				over[1 - i] = looking[1 - i] && second[i]
#else
				over[1 - i] = looking[1 - i]
#endif
			:: else
			fi;
			there = false; looking[i] = false; counts[i] = false; early[i] = false; second[i] = false; over[i] = false
		}
	od
}
#else
/* A look that takes no time, since nobody comes. */
proctype Look() {
	bool before;

	atomic { !fence -> saw(false) }
}
#endif

#define old(i)  (early[i] && counts[i])

proctype Joiner() {
	fence = true;
#ifndef EARLY
	if
#ifdef NOLOOK
	:: true
#else
	:: follows              /* R accepted its subscription */
#endif
	:: !(known && knownEarly) && !old(0) && !old(1) /* what R saw before counts no more */
	fi;
#endif
	introduced = true
}

proctype World() {
end:	do
	:: atomic { noted != 0 -> waiting = waiting & (3 - noted); noted = 0 }
	:: atomic { conn == up && subscribed && !granted -> granted = true; next = true }
#ifndef JOIN
	:: atomic { conn == up -> lose }
	:: atomic { subscribed &&
#ifndef PUBFIRST
		(conn == down || !lease && !next) &&
#endif
		true -> subscribed = false; waiting = 0 }
	:: atomic { lease -> lease = false }
	:: atomic { next && !lease -> next = false }
#endif
#ifdef JOIN
	:: atomic { known -> known = false; knownEarly = false }
	:: atomic { counts[0] -> counts[0] = false; early[0] = false }
	:: atomic { counts[1] -> counts[1] = false; early[1] = false }
#endif
#ifndef JOIN
	:: atomic { fence -> fence = false; gone = true }
#endif
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. CHANGES) { run Change(i) }
		run Reader(); run Source(); run World();
#ifdef OWN
		run Own();
#endif
#ifdef JOIN
		run Look(0); run Look(1); run Joiner()
#else
		run Look()
#endif
	}
}

ltl safe { [] !broken }
