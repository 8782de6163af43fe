package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ogw/vfs"
	"ogw/vfs/users"
)

// bucketPage is how many buckets are read from the store at a time.
const bucketPage = 1000

func (s *Server) listBuckets(r *http.Request, _ httprouter.Params) (any, error) {
	owners := map[uint32]string{}
	out := []Bucket{}
	for after := ""; ; {
		page, err := s.fs.ListBuckets(r.Context(), after, bucketPage)
		if err != nil {
			return nil, err
		}
		for _, b := range page {
			owner, known := owners[b.UID]
			if !known {
				if owner, err = s.ownerName(r, b.UID); err != nil {
					return nil, err
				}
				owners[b.UID] = owner
			}
			out = append(out, bucketOf(b, owner))
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
	u, err := s.owner(r, q.Owner)
	if err != nil {
		return nil, err
	}
	b, err := s.fs.CreateBucket(r.Context(), q.Name, vfs.CheckedCred(u.UID, u.GID))
	return bucketOf(b, u.Name), err
}

// owner finds the user whom a request names by ID or name; "" is the one that
// came with the store.
func (s *Server) owner(r *http.Request, who string) (users.User, error) {
	if who == "" {
		u, err := s.fs.Users().Founder(r.Context())
		if errors.Is(err, vfs.ErrNoSuchUser) {
			err = fmt.Errorf("%w; name another owner (--owner)", err)
		}
		return u, err
	}
	u, err := s.fs.Users().ByID(r.Context(), vfs.UserID(who))
	if errors.Is(err, vfs.ErrNoSuchUser) {
		u, err = s.fs.Users().ByName(r.Context(), who)
	}
	return u, err
}

// ownerName returns the name of the user with a uid, "" if there is none.
func (s *Server) ownerName(r *http.Request, uid uint32) (string, error) {
	u, err := s.fs.Users().ByUID(r.Context(), uid)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		return "", nil
	}
	return u.Name, err
}

func (s *Server) bucket(r *http.Request, p httprouter.Params) (any, error) {
	return s.showBucket(r, p.ByName("name"))
}

func (s *Server) showBucket(r *http.Request, name string) (Bucket, error) {
	info, err := s.fs.HeadBucket(r.Context(), name)
	if err != nil {
		return Bucket{}, err
	}
	d, err := s.fs.BucketDurability(r.Context(), name)
	if err != nil {
		return Bucket{}, err
	}
	owner, err := s.ownerName(r, info.UID)
	if err != nil {
		return Bucket{}, err
	}
	b := bucketOf(info, owner)
	if b.Inherited = d == ""; b.Inherited {
		d = s.fs.Durability()
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
		if err := s.fs.SetBucketDurability(r.Context(), name, vfs.Durability(*q.Durability)); err != nil {
			return nil, err
		}
	}
	return s.showBucket(r, name)
}

func (s *Server) removeBucket(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	return Bucket{Name: name}, s.fs.DeleteBucket(r.Context(), name)
}

func (s *Server) usage(r *http.Request, p httprouter.Params) (any, error) {
	u := Usage{Name: p.ByName("name")}
	var err error
	u.Objects, u.Bytes, err = s.fs.BucketUsage(r.Context(), u.Name)
	return u, err
}
