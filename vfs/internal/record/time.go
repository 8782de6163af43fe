package record

import (
	"math"
	"time"
)

// Time is a time that somebody may choose: seconds since 1970, before it
// negative, and 0 to 999,999,999 nanoseconds after them. Unix nanoseconds in 64
// bits, as the other times have, end in 2262.
type Time struct {
	Sec  int64
	Nsec uint32
}

const nsPerSec = int64(time.Second)

// TimeNS returns the time of Unix nanoseconds.
func TimeNS(ns int64) Time {
	s, n := ns/nsPerSec, ns%nsPerSec
	if n < 0 {
		s, n = s-1, n+nsPerSec
	}
	return Time{s, uint32(n)}
}

// TimeOf returns t.
func TimeOf(t time.Time) Time { return Time{t.Unix(), uint32(t.Nanosecond())} }

// Time returns t as package time has it.
func (t Time) Time() time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// Date returns t, or the nearest time that a date of four digits can express, as those
// of HTTP (RFC 9110 section 5.6.7) and XML are.
func (t Time) Date() time.Time {
	return time.Unix(min(max(t.Sec, firstDate), lastDate), int64(t.Nsec))
}

// 0001-01-01 and 9999-12-31T23:59:59.
const (
	firstDate = -62135596800
	lastDate  = 253402300799
)

// ValidTime reports whether the nanoseconds are less than a second.
func ValidTime(t Time) bool { return int64(t.Nsec) < nsPerSec }

// far reports whether Unix nanoseconds in 64 bits cannot hold t.
func (t Time) far() bool {
	const last = math.MaxInt64 / nsPerSec
	return t.Sec < -last || t.Sec >= last
}

// UnixNS returns Unix nanoseconds, of a time that they cannot hold the nearest.
func (t Time) UnixNS() int64 {
	switch {
	case !t.far():
		return t.Sec*nsPerSec + int64(t.Nsec)
	case t.Sec < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
