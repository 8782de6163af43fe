package server

import (
	"log/slog"
	"math"
)

// connectionShare is the part of the limit of open files that the connections
// of all listeners may take; the store takes the rest.
const connectionShare = 2

// connectionLimit is how many connections each of so many listeners may have: as
// configured, unless the process may not open so many files.
func connectionLimit(configured, listeners int, files uint64, log *slog.Logger) int {
	room := max(1, int(min(files, math.MaxInt32))/connectionShare/listeners)
	if room >= configured {
		return configured
	}
	log.Warn("fewer connections than server.connections: the limit of open files (ulimit -n, LimitNOFILE=) allows no more",
		"configured", configured, "allowed", room, "listeners", listeners, "open_files", files)
	return room
}
