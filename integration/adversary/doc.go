// Package adversary holds attacks on the real binary. Each test is one way in
// that stood open once, or a border between two users, and passes when the
// attack fails. An attack that needs a check of its own power does what the
// attacker may do right beside it: a server that refuses everybody passes
// nothing here.
//
// Set OGW_BIN to an older binary to see an attack succeed; a flood or a load that
// the older one withstands proves nothing. Some tests never failed so: they hold
// borders that stood from the first (TestEveryS3Operation, TestNFSHandlesOfOthers,
// most of TestRESTBorders), a file of the documentation (TestUnitExposure), or
// what there was nothing of before (TestNameLikeAnID: IDs that are no names).
package adversary
