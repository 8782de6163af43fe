package sigv4

import "time"

// How times, and the days of scopes, are signed.
const (
	timeFormat = "20060102T150405Z"
	dateFormat = "20060102"
)

// parseStamp reads a time as clients sign it, x-amz-date. Nearly all write it exactly
// so, which exactStamp reads in a tenth of the time of time.Parse.
func parseStamp(v string) (time.Time, error) {
	if t, ok := exactStamp(v); ok {
		return t, nil
	}
	return time.Parse(timeFormat, v)
}

// exactStamp reads a time of which timeFormat makes v again.
func exactStamp(v string) (time.Time, bool) {
	if len(v) != len(timeFormat) || v[8] != 'T' || v[15] != 'Z' || !exactDay(v[:8]) {
		return time.Time{}, false
	}
	hour, minute, second := digits(v[9:11]), digits(v[11:13]), digits(v[13:15])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return time.Time{}, false
	}
	return time.Date(digits(v[:4]), time.Month(digits(v[4:6])), digits(v[6:8]), hour, minute, second, 0, time.UTC), true
}

// exactDay reports whether v is a day as dateFormat writes it. Of the last days of a
// month it leaves the answer to validDay.
func exactDay(v string) bool {
	if len(v) != len(dateFormat) || digits(v[:4]) < 0 {
		return false
	}
	month, day := digits(v[4:6]), digits(v[6:8])
	return month >= 1 && month <= 12 && day >= 1 && (day <= 28 || validDay(v))
}

func validDay(v string) bool {
	_, err := time.Parse(dateFormat, v)
	return err == nil
}

// digits is the number that v is in decimal, -1 if it has anything but digits.
func digits(v string) int {
	n := 0
	for i := 0; i < len(v); i++ {
		c := v[i] - '0'
		if c > 9 {
			return -1
		}
		n = 10*n + int(c)
	}
	return n
}
