// `oidc-provider` as somebody's identity provider: people sign in there, programs register, and get signed tokens for a
// resource.
//
//     oidc_provider.mjs PORT REDIRECT_URI RESOURCE

import { packages } from './contract.mjs';

const { default: Provider } = await import(packages.resolve('oidc-provider'));
const [port, redirect, resource] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'tribune', client_secret: 'tribune-secret', redirect_uris: [redirect] },
    {
      client_id: 'robot',
      client_secret: 'robot-secret',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  scopes: ['openid', 'offline_access', 'read', 'tasks', 'chat', 'trade', 'admin'],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true }),
  }),
  ttl: { ClientCredentials: (_, token) => (token.scope === 'chat' ? 1 : 600) },
  // As Tribune's own issuer does: whoever signed in need not do it again each hour.
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => ({
        scope: 'read tasks chat',
        audience: indicator,
        accessTokenFormat: 'jwt',
      }),
    },
  },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(`${issuer} ${resource}`));
