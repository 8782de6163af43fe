package admin

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/vfs"
)

// bucketPage is how many buckets are read from the store at a time.
const bucketPage = 1000

func (s *Server) listBuckets(r *http.Request, _ httprouter.Params) (any, error) {
	users, err := s.FS.ListUsers(r.Context())
	if err != nil {
		return nil, err
	}
	owners := map[uint32]string{}
	for _, u := range users {
		if _, ok := owners[u.UID]; !ok {
			owners[u.UID] = u.Name
		}
	}
	out := []Bucket{}
	for after := ""; ; {
		page, err := s.FS.ListBuckets(r.Context(), after, bucketPage)
		if err != nil {
			return nil, err
		}
		for _, b := range page {
			out = append(out, bucketOf(b, owners[b.UID]))
			after = b.Name
		}
		if len(page) < bucketPage {
			return out, nil
		}
	}
}

func bucketOf(b vfs.BucketInfo, owner string) Bucket {
	return Bucket{Name: b.Name, Created: b.Created.UTC(), UID: b.UID, GID: b.GID, Owner: owner}
}

func (s *Server) addBucket(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddBucket
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	cred := &vfs.Cred{Trusted: true}
	if q.Owner != "" {
		u, err := s.FS.GetUser(r.Context(), q.Owner)
		if err != nil {
			return nil, err
		}
		cred.UID, cred.GID = u.UID, u.GID
	}
	b, err := s.FS.CreateBucket(r.Context(), q.Name, cred)
	return bucketOf(b, q.Owner), err
}

func (s *Server) removeBucket(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	return Bucket{Name: name}, s.FS.DeleteBucket(r.Context(), name)
}

func (s *Server) usage(r *http.Request, p httprouter.Params) (any, error) {
	u := Usage{Name: p.ByName("name")}
	var err error
	u.Objects, u.Bytes, err = s.FS.BucketUsage(r.Context(), u.Name)
	return u, err
}
