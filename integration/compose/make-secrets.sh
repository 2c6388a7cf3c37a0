# Makes the fleet's secrets in the volume /secrets, each readable by the one user that needs it. What is there is kept.
set -euo pipefail
umask 077
cd /secrets

random() {
    od --address-radix=n --format=x1 --read-bytes=32 /dev/urandom | tr --delete ' \n'
}

[ ! -e complete ] || exit 0
mkdir --parents postgres azurite leasehold
for name in superuser owner app; do
    random >"postgres/$name-password"
done
head --bytes=64 /dev/urandom | base64 --wrap=0 >azurite/account-key

random >leasehold/derivation-key
random >leasehold/peer-secret
printf 'postgres://leasehold_app:%s@postgres:5432/ledgers\n' "$(cat postgres/app-password)" >leasehold/postgres-url
printf 'postgres://leasehold_owner:%s@postgres:5432/ledgers\n' "$(cat postgres/owner-password)" >leasehold/owner-url
printf 'DefaultEndpointsProtocol=http;AccountName=leasehold;AccountKey=%s;BlobEndpoint=http://azurite:10000/leasehold;\n' \
    "$(cat azurite/account-key)" >leasehold/connection-string

# The users of the images.
chown --recursive postgres:postgres postgres
chown --recursive 65532:65532 leasehold
chmod 0711 .
: >complete
