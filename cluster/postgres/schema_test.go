package postgres

import "testing"

func TestCheckServer(t *testing.T) {
	for version, fits := range map[string]bool{
		"13.16 (Debian 13.16-1)": false, "9.6.24": false, "14.0": true, "15.14 (Debian 15.14-0+deb12u1)": true, "19beta2": true, "": true,
	} {
		if err := checkServer(version); (err == nil) != fits {
			t.Errorf("%q: %v", version, err)
		}
	}
}
