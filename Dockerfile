# One image for every role: `docker run metalflow worker`, `boot`, …
FROM node:20-bookworm-slim AS build
WORKDIR /metalflow
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund
COPY scripts scripts
COPY src src
RUN node scripts/build.mjs

FROM node:20-bookworm-slim
# ipmitool: BMCs that speak IPMI. ipxe: firmware for TFTP. xz and zstd: packed images. The capability lets the unprivileged user bind ports 69 and 514.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates ipmitool ipxe libcap2-bin xz-utils zstd \
 && rm -rf /var/lib/apt/lists/* \
 && setcap cap_net_bind_service=+ep "$(readlink -f "$(command -v node)")" \
 && install -d -o node -g node /data
WORKDIR /metalflow
COPY package.json ./
COPY bin bin
COPY demo demo
COPY --from=build /metalflow/node_modules node_modules
COPY --from=build /metalflow/dist dist
USER node
ENV NODE_ENV=production METALFLOW_DATA_DIR=/data
VOLUME /data
ENTRYPOINT ["node", "/metalflow/bin/metalflow.mjs"]
CMD ["up"]
