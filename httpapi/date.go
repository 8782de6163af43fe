package httpapi

import "time"

// DateText is t as an HTTP date (RFC 9110, section 5.6.7), which
// time.Time.Format takes three times as long for.
func DateText(t time.Time) string {
	const days, months = "SunMonTueWedThuFriSat", "JanFebMarAprMayJunJulAugSepOctNovDec"
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	hour, minute, second := t.Clock()
	var b [len("Mon, 02 Jan 2006 15:04:05 GMT")]byte
	copy(b[:], days[3*t.Weekday():][:3])
	copy(b[3:], ", ")
	two(b[5:], day)
	b[7] = ' '
	copy(b[8:], months[3*(month-1):][:3])
	b[11] = ' '
	two(b[12:], year/100)
	two(b[14:], year%100)
	b[16] = ' '
	two(b[17:], hour)
	b[19] = ':'
	two(b[20:], minute)
	b[22] = ':'
	two(b[23:], second)
	copy(b[25:], " GMT")
	return string(b[:])
}

func two(b []byte, n int) { b[0], b[1] = byte('0'+n/10), byte('0'+n%10) }
