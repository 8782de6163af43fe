// Package survive runs programs on a mount with the option survive, while its
// server is killed and started anew, and stopped and started anew. The programs
// are this package's own test binary; they must see no error and lose nothing.
//
// OGW_SURVIVE_ROUNDS is how often each is done; make test-survive does it 20
// times, and beside them with programs of others: PostgreSQL, sqlite, go build and
// tail -f. Without it, there are two rounds of this package's own programs.
package survive
