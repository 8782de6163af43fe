package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"

	"github.com/minio/minio-go/v7"
)

// refusals are what an endpoint says that takes nothing for a while.
var refusals = map[string]error{
	"SlowDown":  minio.ErrorResponse{StatusCode: http.StatusOK, Code: "SlowDown"},
	"429":       minio.ErrorResponse{StatusCode: http.StatusTooManyRequests, Code: "Throttled"},
	"503":       minio.ErrorResponse{StatusCode: http.StatusServiceUnavailable, Code: "503 Service Unavailable"},
	"404":       minio.ErrorResponse{StatusCode: http.StatusNotFound, Code: minio.NoSuchKey},
	"not there": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
}

// A write waits for an endpoint that refuses it, for some time, and without many requests.
func TestRetryRefused(t *testing.T) {
	for name, refusal := range refusals {
		synctest.Test(t, func(t *testing.T) {
			begin, n := time.Now(), 0
			busy := true
			write := func(context.Context) error {
				if n++; busy || time.Since(begin) < patience/2 {
					return refusal
				}
				return nil
			}
			err := tries{patient: true}.retry(t.Context(), write)
			if took := time.Since(begin); !errors.Is(err, refusal) || took < patience-maxPause || took > patience || n > 20 {
				t.Errorf("%s: for %v: %v after %d tries", name, took, err, n)
			}
			busy, begin = false, time.Now()
			if err := (tries{patient: true}).retry(t.Context(), write); err != nil {
				t.Errorf("%s: for a while: %v", name, err)
			}
		})
	}
}

// Who waits for the store to be there, at the start, has its own pace; so has what fails otherwise.
func TestRetryFails(t *testing.T) {
	other := minio.ErrorResponse{StatusCode: http.StatusInternalServerError, Code: "InternalError"}
	for patient, failures := range map[bool]map[string]error{false: refusals, true: {"500": other, "no answer": errors.New("reset")}} {
		for name, failure := range failures {
			synctest.Test(t, func(t *testing.T) {
				begin, n := time.Now(), 0
				err := tries{patient}.retry(t.Context(), func(context.Context) error {
					n++
					return failure
				})
				if took := time.Since(begin); err == nil || n != maxTries || took > time.Second {
					t.Errorf("%s: %v after %d tries, %v", name, err, n, took)
				}
			})
		}
	}
}

// An endpoint that is away is told at the start within seconds.
func TestOpenUnreachable(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, url := range []string{busy.URL, gone.URL} {
		begin := time.Now()
		_, err := Open(t.Context(), Options{Endpoint: url, Bucket: "store", Region: "r", AccessKey: "k", SecretKey: "s"})
		if took := time.Since(begin); !errors.Is(err, cluster.ErrUnavailable) || took > patience/3 {
			t.Errorf("%v after %v", err, took)
		}
		if refused := errors.Is(err, syscall.ECONNREFUSED); refused != (url == gone.URL) {
			t.Errorf("refused: %v: %v", refused, err)
		}
	}
}
