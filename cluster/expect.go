package cluster

// Expecter is a Txn of an engine whose commit can compare a pair that was not
// read. To read it costs such an engine a round trip.
type Expecter interface {
	// Expect has the transaction run again unless key has value when it commits.
	// It is no read: the transaction learns nothing of others that it read.
	Expect(key, value []byte) error
}
