package etcd

import (
	"bytes"
	"slices"

	"ogw/cluster"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// reads is what a transaction read, and at which revisions, as an occ.Reads.
// A nil one takes no note. It is for one goroutine.
type reads struct {
	keys   keyspace
	at     map[string]int64 // by the store's key: the ModRevision that was seen, 0 for absent
	ranges []cluster.KeyRange
	pages  [][]*mvccpb.KeyValue // of scans: more than they visited
}

func newReads(keys keyspace) *reads { return &reads{keys: keys, at: map[string]int64{}} }

// saw notes what a read of key found.
func (r *reads) saw(key []byte, rev int64) {
	if r != nil {
		r.at[string(key)] = rev
	}
}

// met notes what a scan fetched.
func (r *reads) met(page []*mvccpb.KeyValue) {
	if r != nil {
		r.pages = append(r.pages, page)
	}
}

// AddKey implements occ.Reads. The read that follows calls saw.
func (r *reads) AddKey([]byte) {}

// AddRange implements occ.Reads.
func (r *reads) AddRange(start, end []byte) {
	r.ranges = append(r.ranges, cluster.KeyRange{Start: bytes.Clone(start), End: bytes.Clone(end)})
}

// compares returns what must hold for the reads at rev to hold still. A range
// tells what is new in it, and the pairs that were met what is gone.
func (r *reads) compares(rev int64) []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, 0, len(r.at)+len(r.ranges)+1)
	for _, kr := range r.ranges {
		cmp := clientv3.Compare(clientv3.ModRevision(r.keys.key(kr.Start)), "<", rev+1)
		cmps = append(cmps, cmp.WithRange(r.keys.end(kr.End)))
	}
	r.addVisited()
	for key, seen := range r.at {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(r.keys.key([]byte(key))), "=", seen))
	}
	return cmps
}

// addVisited adds those pairs of the pages that lie in a range which counts as
// read.
func (r *reads) addVisited() {
	for _, page := range r.pages {
		for _, kv := range page {
			key := r.keys.strip(kv.Key)
			if slices.ContainsFunc(r.ranges, func(kr cluster.KeyRange) bool {
				return bytes.Compare(key, kr.Start) >= 0 && (kr.End == nil || bytes.Compare(key, kr.End) < 0)
			}) {
				r.at[string(key)] = kv.ModRevision
			}
		}
	}
}
