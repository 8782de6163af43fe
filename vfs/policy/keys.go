package policy

import "strings"

// conditionKeys are the keys that the policy of a bucket may name, in lower case.
// Those that no request to this program has are known, too: a document that names
// them is evaluated as if they were absent, as at Amazon where a request lacks them.
var conditionKeys = func() map[string]bool {
	keys := map[string]bool{}
	for service, names := range map[string]string{
		"aws:": `calledvia calledviafirst calledvialast currenttime ec2instancesourceprivateipv4 ec2instancesourcevpc epochtime
			federatedprovider ismcpserviceaction multifactorauthage multifactorauthpresent principalaccount principalarn
			principalisawsservice principalorgid principalorgpaths principalservicename principalservicenameslist principaltype
			referer requestedregion requesttag resourceaccount resourceorgid resourceorgpaths securetransport sourceaccount
			sourcearn sourceidentity sourceip sourceorgid sourceorgpaths sourceowner sourcevpc sourcevpcarn sourcevpce
			tagkeys tokenissuetime useragent userid username viaawsservice vpceaccount vpceorgid vpceorgpaths vpcsourceip`,
		"s3:": `accessgrantsinstancearn accesspointnetworkorigin authtype dataaccesspointaccount dataaccesspointarn
			delimiter if-match if-none-match inventoryaccessibleoptionalfields jobsuspendedcause locationconstraint max-keys
			object-lock-legal-hold object-lock-mode object-lock-remaining-retention-days object-lock-retain-until-date
			objectcreationoperation prefix requestobjecttagkeys resourceaccount signatureage signatureversion tlsversion
			versionid x-amz-acl x-amz-content-sha256 x-amz-copy-source x-amz-grant-full-control x-amz-grant-read
			x-amz-grant-read-acp x-amz-grant-write x-amz-grant-write-acp x-amz-metadata-directive x-amz-object-ownership
			x-amz-server-side-encryption x-amz-server-side-encryption-aws-kms-key-id
			x-amz-server-side-encryption-customer-algorithm x-amz-storage-class x-amz-website-redirect-location`,
		"sts:": `externalid rolesessionname sourceidentity`,
		"jwt:": `aud iss sub`,
	} {
		for name := range strings.FieldsSeq(names) {
			keys[service+name] = true
		}
	}
	return keys
}()

// tagKeys begin keys that end in the name of a tag.
var tagKeys = []string{"aws:principaltag/", "aws:requesttag/", "aws:resourcetag/", "s3:buckettag/", "s3:existingobjecttag/", "s3:requestobjecttag/"}

// listKeys are keys that only requests for lists have, with the actions of those.
var listKeys = map[string][]string{
	"s3:prefix":    {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"},
	"s3:delimiter": {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"},
	"s3:max-keys":  {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"},
}

// checkKey refuses a key that is not known, or that requests of the statement's
// actions never have.
func (s *statement) checkKey(key string) error {
	if !conditionKeys[key] {
		for _, begin := range tagKeys {
			if name, ok := strings.CutPrefix(key, begin); ok && name != "" {
				return nil
			}
		}
		return malformedBy("Policy has an invalid condition key", key)
	}
	of, limited := listKeys[key]
	if !limited || s.notActions {
		return nil
	}
	for _, action := range of {
		if matchAny(s.actions, action, nil) {
			return nil
		}
	}
	return malformed("Conditions do not apply to combination of actions and resources in statement")
}

// checkBucketActions refuses a statement with an action that none of its resources
// can be meant by: of a bucket's policy, the bucket or objects in it.
func (s *statement) checkBucketActions(bucket string) error {
	if s.notActions || s.notResources {
		return nil
	}
	objects, itself := false, false
	for i := range s.resources {
		if s.resources[i].fixed() && s.resources[i].head == bucketARN+bucket {
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
