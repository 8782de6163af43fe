package etcd

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// ranges returns the answers to reads.
func ranges(answers []*pb.ResponseOp) []*pb.RangeResponse {
	list := make([]*pb.RangeResponse, len(answers))
	for i, a := range answers {
		list[i] = a.GetResponseRange()
	}
	return list
}

// pairOf returns the value that a read by key found and its ModRevision, nil and 0 if
// there is none.
func pairOf(answer *pb.RangeResponse) (value []byte, rev int64) {
	if len(answer.Kvs) == 0 {
		return nil, 0
	}
	return notNil(answer.Kvs[0].Value), answer.Kvs[0].ModRevision
}

// notNil keeps an empty value distinct from an absent one, as cluster.Reader does.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
