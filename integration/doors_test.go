package integration

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ogw/integration/doors"
	"ogw/integration/model"
)

// serverDoors are all doors of one server.
type serverDoors struct {
	s3   *doors.S3
	rest *doors.REST
	fuse *doors.Mount
	nfs  *doors.NFS
	mnt  string // where the mount is
}

func (s *server) doors(t *testing.T) *serverDoors {
	t.Helper()
	mnt := s.with(t).Mount()
	return &serverDoors{s.s3Door(), doors.NewREST(s.REST), doors.NewMount(mnt), s.nfsDoor(t, "/"), mnt}
}

func (s *server) s3Door() *doors.S3 { return doors.NewS3(s.S3, s.KeyID, s.Secret) }

// makeBucket spares the tests a start of aws, which takes over a second of a processor.
func (s *server) makeBucket(name string) {
	s.T.Helper()
	if _, err := s.s3Door().CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		s.T.Fatal(err)
	}
}

// nfsDoor mounts an export.
func (s *server) nfsDoor(t *testing.T, export string) *doors.NFS {
	t.Helper()
	d, err := doors.DialNFS(s.NFS, export)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// all are the doors, those that publish a whole file atomically first.
func (d *serverDoors) all() []doors.Door { return []doors.Door{d.s3, d.rest, d.fuse, d.nfs} }

func (d *serverDoors) posix() []doors.Posix { return []doors.Posix{d.fuse, d.nfs} }

func (d *serverDoors) model() *model.Doors {
	return &model.Doors{
		Objects: []doors.Object{d.s3, d.rest}, Stores: []doors.Store{d.s3},
		Posix: d.posix(),
	}
}
