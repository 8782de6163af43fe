package policy

import "strings"

// level is what an action of S3 is about.
type level byte

const (
	onService level = iota
	onBucket
	onObject
)

// s3Actions are the actions of S3 (Service Authorization Reference, "Actions,
// resources, and condition keys for Amazon S3"), those of features that this program
// lacks included, so that documents written for Amazon are accepted.
var s3Actions = map[level]string{
	onService: `ListAllMyBuckets GetAccountPublicAccessBlock PutAccountPublicAccessBlock`,
	onBucket: `CreateBucket DeleteBucket DeleteBucketPolicy DeleteBucketWebsite GetAccelerateConfiguration
		GetAnalyticsConfiguration GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging GetBucketNotification
		GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy GetBucketPolicyStatus
		GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging GetBucketVersioning GetBucketWebsite
		GetEncryptionConfiguration GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration
		GetMetricsConfiguration GetReplicationConfiguration ListBucket ListBucketMultipartUploads ListBucketVersions
		PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification
		PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock
		PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
		PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration
		PutReplicationConfiguration`,
	onObject: `AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion
		DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
		GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl GetObjectVersionAttributes
		GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
		ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold PutObjectRetention
		PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete ReplicateObject ReplicateTags RestoreObject
		UpdateObjectEncryption`,
}

// s3Action is one of them, such as "s3:GetObject".
type s3Action struct {
	name string
	on   level
}

var allActions = func() (list []s3Action) {
	for on, names := range s3Actions {
		for name := range strings.FieldsSeq(names) {
			list = append(list, s3Action{"s3:" + name, on})
		}
	}
	return list
}()

var actionLevels = func() map[string]level {
	levels := make(map[string]level, len(allActions))
	for _, a := range allActions {
		levels[strings.ToLower(a.name)] = a.on
	}
	return levels
}()

// anyAction reports whether a pattern matches an action on one of certain levels.
func anyAction(a *pattern, on func(level) bool) bool {
	if a.fixed() {
		l, ok := actionLevels[strings.ToLower(a.prefix())]
		return ok && on(l)
	}
	for i := range allActions {
		if on(allActions[i].on) && a.match(allActions[i].name, nil) {
			return true
		}
	}
	return false
}

// checkBucketActions refuses a statement with an action that none of its resources
// can be meant by: of a bucket's policy, the bucket or objects in it.
func (s *statement) checkBucketActions(bucket string) error {
	if s.notActions || s.notResources {
		return nil
	}
	objects, itself := false, false
	for i := range s.resources {
		if s.resources[i].fixed() && s.resources[i].prefix() == bucketARN+bucket {
			itself = true
		} else {
			objects = true
		}
	}
	for i := range s.actions {
		fits := func(on level) bool { return on == onBucket && itself || on == onObject && objects }
		if !s.actions[i].isAny() && !anyAction(&s.actions[i], fits) {
			return malformed("Action does not apply to any resource(s) in statement")
		}
	}
	return nil
}

// OnObject reports whether an action of S3's is about an object.
func OnObject(action string) bool { return actionLevels[strings.ToLower(action)] == onObject }
