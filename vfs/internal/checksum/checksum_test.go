package checksum

import (
	"encoding/hex"
	"testing"
)

// Known answers: FIPS 180, RFC 1321 and the specification of xxHash.
func TestChecksumAlgorithms(t *testing.T) {
	for alg, want := range map[Algorithm]string{
		CRC32:     "352441c2",
		CRC32C:    "364b3fb7",
		SHA1:      "a9993e364706816aba3e25717850c26c9cd0d89d",
		SHA256:    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		SHA512:    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		MD5:       "900150983cd24fb0d6963f7d28e17f72",
		XXHASH64:  "44bc2cf5ad770999",
		XXHASH3:   "78af5f94892f3950",
		XXHASH128: "06b05ab6733a618578af5f94892f3950",
	} {
		h, err := alg.New()
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte("a"))
		h.Write([]byte("bc"))
		if got := hex.EncodeToString(h.Sum(nil)); got != want || h.Size() != alg.Size() || len(got) != 2*alg.Size() {
			t.Errorf("%s: %s, want %s (%d bytes)", alg, got, want, alg.Size())
		}
	}
	if _, err := Algorithm("CRC8").New(); err == nil {
		t.Error("CRC8 is known")
	}
}
