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

func (s *Server) bucket(r *http.Request, p httprouter.Params) (any, error) {
	return s.showBucket(r, p.ByName("name"))
}

func (s *Server) showBucket(r *http.Request, name string) (Bucket, error) {
	info, err := s.FS.HeadBucket(r.Context(), name)
	if err != nil {
		return Bucket{}, err
	}
	d, err := s.FS.BucketDurability(r.Context(), name)
	if err != nil {
		return Bucket{}, err
	}
	users, err := s.FS.ListUsers(r.Context())
	if err != nil {
		return Bucket{}, err
	}
	owner := ""
	for _, u := range users {
		if u.UID == info.UID {
			owner = u.Name
			break
		}
	}
	b := bucketOf(info, owner)
	if b.Inherited = d == ""; b.Inherited {
		d = s.FS.Durability()
	}
	b.Durability = string(d)
	return b, nil
}

func (s *Server) setBucket(r *http.Request, p httprouter.Params) (any, error) {
	var q SetBucket
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	name := p.ByName("name")
	if q.Durability != nil {
		if err := s.FS.SetBucketDurability(r.Context(), name, vfs.Durability(*q.Durability)); err != nil {
			return nil, err
		}
	}
	return s.showBucket(r, name)
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
