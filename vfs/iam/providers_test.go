package iam

import "testing"

// TestProviderURL: an issuer is written in one way, but for a slash at its end: tokens
// bring it, and each way is asked for its documents.
func TestProviderURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://id.example":             "id.example",
		"https://id.example/":            "id.example",
		"https://id.example:8443/r/%7Ex": "id.example:8443/r/%7Ex",
		"https://192.0.2.1/r/":           "192.0.2.1/r",
		"https://[2001:db8::1]:8443":     "[2001:db8::1]:8443",
		"http://id.example":              "",
		"hTTps://id.example":             "",
		"https://id.example#":            "",
		"https://id.example/#":           "",
		"https://id.example/r#x":         "",
		"https://id.example?":            "",
		"https://id.example/r?x":         "",
		"https://@id.example":            "",
		"https://x@id.example":           "",
		"https://%C3%A9.example":         "", // the host é.example
		"https://id.example/é":           "", // the path /%C3%A9
		"https://:443/r":                 "",
		"https://":                       "",
		"https:///r":                     "",
		"https:id.example":               "",
		"":                               "",
	} {
		if got, err := providerURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", text, got, err, want)
		}
	}
}
